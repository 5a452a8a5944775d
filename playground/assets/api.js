// What the page asks of the sidecar, and the user's credentials for the engines. These stay in memory and, where the user says
// so, in the session of this tab; they are sent in the bodies of our own requests and nowhere else.

// Problem is an answer that is none: status 0 where the sidecar itself did not answer.
export class Problem extends Error {
  constructor (status, message, hint) {
    super(message)
    Object.assign(this, { status, hint })
  }

  get refused () {
    return this.status === 401 || this.status === 403
  }
}

const here = 'playground/api/'

async function ask (what, body, signal) {
  let reply, answer
  try {
    reply = await fetch(
      here + what,
      body && {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
        signal,
        credentials: 'same-origin'
      }
    )
    answer = await reply.json()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    if (reply) throw new Problem(reply.status, `The sidecar's answer (status ${reply.status}) is no JSON.`, 'Look at its log.')
    throw new Problem(0, 'The sidecar does not answer.', 'See whether it still runs, then try again.')
  }
  if (!reply.ok) throw new Problem(reply.status, answer.error ?? `status ${reply.status}`, answer.hint ?? '')
  return answer
}

export const engines = () => ask('engines')
export const indices = (question, signal) => ask('indices', { ...question, ...credentials(question.engine) }, signal)
export const search = (question, signal) => ask('search', { ...question, ...credentials(question.engine) }, signal)

const inMemory = new Map()
const drawer = 'neardup.playground.'

const credentials = engine => {
  const given = known(engine)
  return given ? { credentials: given } : {}
}

// known returns what was given for an engine, or undefined.
export function known (engine) {
  if (!inMemory.has(engine)) {
    try {
      const kept = JSON.parse(sessionStorage.getItem(drawer + engine))
      if (kept) inMemory.set(engine, kept)
    } catch {
      /* a browser that keeps nothing */
    }
  }
  return inMemory.get(engine)
}

// give takes credentials for an engine, and keeps them for as long as the tab is open if that is wanted.
export function give (engine, given, keep) {
  forget(engine)
  inMemory.set(engine, given)
  try {
    if (keep) sessionStorage.setItem(drawer + engine, JSON.stringify(given))
  } catch {
    /* then they last as long as the page */
  }
}

export function forget (engine) {
  inMemory.delete(engine)
  try {
    sessionStorage.removeItem(drawer + engine)
  } catch {
    /* there is nothing to remove */
  }
}

// kept reports whether the session of the tab has credentials for an engine.
export function kept (engine) {
  try {
    return sessionStorage.getItem(drawer + engine) !== null
  } catch {
    return false
  }
}
