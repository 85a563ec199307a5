// Event latency: the time from a write to the event of another listening client, at a steady rate.

import CRocksDB
import Foundation
import NIOConcurrencyHelpers
import NIOCore

/// The median and the 99th percentile of the time from sending a write to another client's event, in
/// microseconds.
func eventLatency(_ setting: Setting, perSecond: Int) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  let path = "/.ws?v=5&ns=bench"
  let sent = NIOLockedValueBox<[NIODeadline]>([])
  let times = NIOLockedValueBox<[Double]>([])
  let isListening = SharedCounter()
  let listener = try await WebSocketConnection.connect(port: server.port, path: path, on: setting.group) {
    text, _ in
    if text.contains(#""s":"ok""#) { return isListening.add() }
    guard let number = text.number(after: #""n":"#) else { return }
    let now = NIODeadline.now()
    let start = sent.withLockedValue { number < $0.count ? $0[number] : now }
    times.withLockedValue { $0.append(Double((now - start).nanoseconds) / 1000) }
  }
  listener.send(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/bench","h":""}}}"#)
  try await waitUntil("the listen was not answered") { isListening.value > 0 }
  var writers: [WebSocketConnection] = []
  for _ in 0..<10 {
    writers.append(
      try await WebSocketConnection.connect(port: server.port, path: path, on: setting.group) { _, _ in })
  }
  let loop = setting.group.any()
  let begin = NIODeadline.now()
  let clients = writers
  // Sends all writes that are due, so that late ticks do not lower the rate.
  let ticks = loop.scheduleRepeatedTask(initialDelay: .zero, delay: .microseconds(200)) { _ in
    let due = Int((NIODeadline.now() - begin).nanoseconds) * perSecond / 1_000_000_000
    while true {
      let number = sent.withLockedValue { sent -> Int? in
        guard sent.count < due else { return nil }
        sent.append(.now())
        return sent.count - 1
      }
      guard let number else { return }
      clients[number % clients.count].send(
        #"{"t":"d","d":{"r":\#(number),"a":"p","b":{"p":"/bench/w\#(number % 100)","d":{"n":\#(number),"text":"a text of some thirty characters"}}}}"#
      )
    }
  }
  try await Task.sleep(for: .seconds(min(1, setting.seconds / 3)))
  times.withLockedValue { $0.removeAll() }
  try await Task.sleep(for: .seconds(setting.seconds))
  let measured = times.withLockedValue { $0 }
  ticks.cancel()
  await close(writers + [listener])
  return [percentile(measured, 0.5), percentile(measured, 0.99)]
}

/// The same times for a small record appended and synced by RocksDB, at the same rate.
func bareAppendLatency(_ setting: Setting, perSecond: Int) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let times = try BareEngine.appendTimes(directory: directory, seconds: setting.seconds, perSecond: perSecond)
  return [percentile(times, 0.5), percentile(times, 0.99)]
}

extension ByteBuffer {
  /// The digits after the first occurrence of `prefix`.
  func number(after prefix: String) -> Int? {
    let needle = Array(prefix.utf8)
    return withUnsafeReadableBytes { bytes in
      guard bytes.count > needle.count else { return nil }
      for start in 0..<(bytes.count - needle.count)
      where bytes[start..<(start + needle.count)].elementsEqual(needle) {
        var number: Int?
        for byte in bytes[(start + needle.count)...] {
          guard byte >= 48, byte <= 57 else { break }
          number = (number ?? 0) * 10 + Int(byte - 48)
        }
        return number
      }
      return nil
    }
  }
}
