// Package proxy carries the live traffic between clients and one engine: one handler with a flow for writes, one for reads and one for
// searches. Everything else passes as it came.
//
//   - A write's body streams through the dialect, which adds a sketch to each document of a configured index.
//   - A read's reply streams through the dialect, which cuts our fields out.
//   - A search is read whole, asked wider, collapsed, and answered with the page that the client asked for. On any doubt of ours
//     before the first byte to the client, the search is sent as the client wrote it.
//
// Every request carries the client's own credentials, and what is learned with them is kept apart by them.
package proxy
