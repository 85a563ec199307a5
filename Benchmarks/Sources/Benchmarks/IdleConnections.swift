// Idle connections: the cost of a connection that only listens.

import NIOCore

/// Bytes of the server's memory per idle connection that listens to one path.
func idleConnection(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startHearth(["--ephemeral"], database: true)
  defer { server.stop() }
  return try await idleBytes(
    server, path: "/.ws?v=5&ns=bench", setting, connections,
    subscribe: #"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/idle","h":""}}}"#)
}

/// The same for a bare WebSocket server.
func bareIdleConnection(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startBare("bare-websocket")
  defer { server.stop() }
  return try await idleBytes(server, path: "/", setting, connections, subscribe: nil)
}

private func idleBytes(
  _ server: ChildProcess, path: String, _ setting: Setting, _ count: Int, subscribe: String?
) async throws -> Double {
  let answered = SharedCounter()
  var held: [WebSocketConnection] = []
  func open(_ n: Int) async throws {
    for _ in 0..<n {
      let connection = try await WebSocketConnection.connect(port: server.port, path: path, on: setting.group)
      { text, _ in
        if text.contains(#""s":"ok""#) { answered.add() }
      }
      if let subscribe { connection.send(subscribe) }
      held.append(connection)
    }
    let count = held.count
    try await waitUntil("\(answered.value) of \(count) listens answered") {
      subscribe == nil || answered.value >= count
    }
  }
  // The first connections allocate shared memory, so they are not counted.
  try await open(200)
  let before = try server.residentBytes()
  try await open(count)
  let after = try server.residentBytes()
  await close(held)
  return Double(after - before) / Double(count)
}
