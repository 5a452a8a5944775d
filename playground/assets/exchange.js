// A request to whatever serves the page, and its answer as JSON.

// exchange sends a request: GET, or POST if there is a body. It returns {reply, answer}: without an answer if that is not JSON, and without a
// reply if none came.
export async function exchange (url, body, headers, signal) {
  let reply, answer
  try {
    reply = await fetch(
      url,
      body === undefined
        ? { headers, signal }
        : { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body), signal }
    )
    answer = await reply.json()
  } catch (error) {
    if (error.name === 'AbortError') throw error
  }
  return { reply, answer }
}
