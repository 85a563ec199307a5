// Fan-out: the writes of one client, delivered to many listeners.

import Foundation
import NIOCore

/// Messages per second delivered to `listeners` connections that listen to one path. One writer has four writes
/// in flight.
func fanOut(_ setting: Setting, listeners: Int) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  return try await fanOutRate(
    port: server.port, path: "/.ws?v=5&ns=bench", setting, listeners: listeners,
    subscribe: #"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/bench","h":""}}}"#,
    marker: "benchmark-payload", acknowledgement: #""s":"ok""#
  ) { n in
    #"{"t":"d","d":{"r":\#(n),"a":"p","b":{"p":"/bench","d":{"n":\#(n),"text":"benchmark-payload"}}}}"#
  }
}

/// The same against a bare broadcast that encodes nothing.
func bareFanOut(_ setting: Setting, listeners: Int) async throws -> Double {
  let server = try setting.startBare("bare-websocket")
  defer { server.stop() }
  return try await fanOutRate(
    port: server.port, path: "/", setting, listeners: listeners, subscribe: nil,
    marker: "benchmark-payload", acknowledgement: "benchmark-payload"
  ) { n in
    #"{"t":"d","d":{"b":{"p":"bench","d":{"n":\#(n),"text":"benchmark-payload"}},"a":"d"}}"#
  }
}

private func fanOutRate(
  port: Int, path: String, _ setting: Setting, listeners: Int, subscribe: String?, marker: String,
  acknowledgement: String, write: @escaping @Sendable (Int) -> String
) async throws -> Double {
  let delivered = SharedCounter()
  let subscribed = SharedCounter()
  var connections: [WebSocketConnection] = []
  for _ in 0..<listeners {
    let connection = try await WebSocketConnection.connect(port: port, path: path, on: setting.group) {
      text, _ in
      if text.contains(marker) {
        delivered.add()
      } else if text.contains(#""s":"ok""#) {
        subscribed.add()
      }
    }
    if let subscribe { connection.send(subscribe) }
    connections.append(connection)
  }
  if subscribe != nil {
    try await waitUntil("\(subscribed.value) of \(listeners) listens answered") {
      subscribed.value >= listeners
    }
  }
  let sequence = SharedCounter()
  let writer = try await WebSocketConnection.connect(port: port, path: path, on: setting.group) {
    text, channel in
    guard text.contains(acknowledgement) else { return }
    sequence.add()
    var bytes = channel.allocator.buffer(capacity: 128)
    bytes.writeString(write(sequence.value))
    channel.writeAndFlush(
      WebSocketFrameFactory.text(bytes), promise: nil)
  }
  for _ in 0..<4 {
    sequence.add()
    writer.send(write(sequence.value))
  }
  try await Task.sleep(for: .seconds(min(1, setting.seconds / 3)))
  let before = delivered.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let rate = Double(delivered.value - before) / (ContinuousClock.now - start).seconds
  await close(connections + [writer])
  return rate
}
