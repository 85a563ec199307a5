// Connection storm: connections per second, from the connect to a confirmed listen.

import NIOConcurrencyHelpers
import NIOCore

/// The number of connections in progress at the same time.
private let maximumInProgress = 200

/// Connections per second that were greeted, authenticated, and had a listen confirmed.
func connectionStorm(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startHearth(["--ephemeral"], database: true)
  defer { server.stop() }
  // {"alg":"none","typ":"JWT"} {"sub":"storm","user_id":"storm"}, like the emulator's users.
  let token = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiJzdG9ybSIsInVzZXJfaWQiOiJzdG9ybSJ9."
  return try await storm(server, setting, connections, path: "/.ws?v=5&ns=bench") { text, channel, done in
    let answer: String
    switch text.number(after: #""r":"#) {
    case 1 where text.contains(#""s":"ok""#):
      answer = #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/storm","h":""}}}"#
    case 2 where text.contains(#""s":"ok""#): return done()
    case nil where text.contains(#""t":"h""#):
      answer = #"{"t":"d","d":{"r":1,"a":"auth","b":{"cred":"\#(token)"}}}"#
    // A rejected request ends the connection and the measurement.
    case .some: return channel.close(promise: nil)
    case nil: return
    }
    channel.writeAndFlush(WebSocketFrameFactory.text(ByteBuffer(string: answer)), promise: nil)
  }
}

/// Connections per second that became bare WebSockets.
func bareConnectionStorm(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startBare("bare-websocket")
  defer { server.stop() }
  return try await storm(server, setting, connections, path: "/", onText: nil)
}

private typealias OnText = @Sendable (ByteBuffer, any Channel, _ done: @Sendable () -> Void) -> Void

private func storm(
  _ server: ChildProcess, _ setting: Setting, _ count: Int, path: String, onText: OnText?
) async throws -> Double {
  let port = server.port
  let group = setting.group
  @Sendable func connectOne() async throws -> WebSocketConnection {
    guard let onText else {
      return try await WebSocketConnection.connect(port: port, path: path, on: group) { _, _ in }
    }
    let arrived = group.any().makePromise(of: Void.self)
    let connection = try await WebSocketConnection.connect(port: port, path: path, on: group) {
      text, channel in
      onText(text, channel) { arrived.succeed() }
    }
    connection.channel.closeFuture.whenComplete { _ in arrived.fail(BenchmarkFailure("closed in the storm")) }
    try await arrived.futureResult.get()
    return connection
  }
  let processor = ProcessorTime(server)
  let start = ContinuousClock.now
  let connections = try await withThrowingTaskGroup(of: WebSocketConnection.self) { tasks in
    var connections: [WebSocketConnection] = []
    for _ in 0..<maximumInProgress { tasks.addTask(operation: connectOne) }
    var begun = maximumInProgress
    while let connection = try await tasks.next() {
      connections.append(connection)
      if begun < count {
        begun += 1
        tasks.addTask(operation: connectOne)
      }
    }
    return connections
  }
  let elapsed = (ContinuousClock.now - start).seconds
  processor.report(calls: count, in: setting)
  await close(connections)
  return Double(count) / elapsed
}
