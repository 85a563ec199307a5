// Tests of a WebChannel session: the state machine with a simulated clock.
//
// A session carries one Listen or Write stream of a browser. The client sends numbered messages in POST requests
// (forward POSTs). The server sends numbered arrays on the back channel, which is one long response (streaming) or
// a series of short ones (polling). The client acknowledges arrays in later requests. A noop is an array without
// content that keeps the back channel alive.

import NIOCore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import FirestoreEndpoints

@Suite("WebChannel session")
struct WebChannelSessionTests {
  private let limits = WebChannelLimits()
  private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

  private func session(_ change: (inout WebChannelLimits) -> Void = { _ in }) -> WebChannelSession {
    var limits = limits
    change(&limits)
    return WebChannelSession(limits, now: start)
  }

  private func streaming(_ acknowledged: Int) -> BackChannelRequest {
    BackChannelRequest(acknowledged: acknowledged, isStreaming: true)
  }

  private func polling(_ acknowledged: Int, _ timeout: TimeAmount? = nil) -> BackChannelRequest {
    BackChannelRequest(acknowledged: acknowledged, isStreaming: false, timeout: timeout)
  }

  private func arrays(_ frames: ByteBuffer) -> [String] { ReceivedArray.all(frames).map(\.text) }

  private func payload(_ text: String) -> ByteBuffer { ByteBuffer(string: "[\"\(text)\"]") }

  @Test("A streaming back channel sends a noop immediately, then arrays as they arrive")
  func streamsImmediately() throws {
    var session = session()
    let first = try session.open(streaming(0), now: start)
    #expect(arrays(first.frames) == ["1 [\"noop\"]"])
    #expect(!first.endsBackChannel)
    let next = session.send([payload("a"), payload("b")], now: start)
    #expect(arrays(next.frames) == ["2 [\"a\"]", "3 [\"b\"]"])
    #expect(!next.endsBackChannel)
  }

  @Test("A new back channel starts with the queued arrays; it sends a noop only if there are none")
  func queuedArraysReplaceNoop() throws {
    var session = session()
    #expect(session.send([payload("a")], now: start).frames.readableBytes == 0)
    #expect(arrays(try session.open(streaming(0), now: start).frames) == ["1 [\"a\"]"])
  }

  @Test("An idle back channel sends a noop at each keep-alive interval")
  func keepAlive() throws {
    var session = session { $0.maximumBackChannelLifetime = .minutes(5) }
    _ = try session.open(streaming(0), now: start)
    #expect(session.deadline == start + .seconds(30))
    #expect(session.tick(now: start + .seconds(29)) == WebChannelSession.Actions())
    #expect(arrays(session.tick(now: start + .seconds(30)).frames) == ["2 [\"noop\"]"])
    _ = session.send([payload("a")], now: start + .seconds(50))
    #expect(session.deadline == start + .seconds(80))
  }

  @Test("A streaming back channel ends at its maximum lifetime")
  func streamingLifetime() throws {
    var session = session()
    _ = try session.open(streaming(0), now: start)
    _ = session.tick(now: start + .seconds(30))
    let end = session.tick(now: start + .seconds(60))
    #expect(end.endsBackChannel && end.frames.readableBytes == 0)
    #expect(session.backChannel == nil)
  }

  @Test("A streaming back channel that occupies its connection ends earlier, also while arrays arrive")
  func connectionHold() throws {
    var session = session()
    var request = streaming(0)
    request.occupiesConnection = true
    _ = try session.open(request, now: start)
    #expect(session.deadline == start + .seconds(20))
    #expect(!session.send([payload("a")], now: start + .seconds(19)).endsBackChannel)
    #expect(session.tick(now: start + .seconds(20)).endsBackChannel)
    request.acknowledged = 2
    #expect(arrays(try session.open(request, now: start + .seconds(20)).frames) == ["3 [\"noop\"]"])
  }

  @Test("A back channel that may occupy a browser's last connection ends soon, streaming or polling")
  func lastConnectionHold() throws {
    for var request in [streaming(0), polling(0)] {
      var session = session { $0.maximumLastConnectionHold = .milliseconds(250) }
      request.occupiesConnection = true
      request.occupiesLastConnection = true
      _ = try session.open(request, now: start)
      #expect(session.deadline == start + .milliseconds(250))
      #expect(session.tick(now: start + .milliseconds(250)).endsBackChannel)
    }
  }

  @Test("A streaming back channel ends after its byte limit")
  func streamingEndsAfterManyBytes() throws {
    var session = session { $0.maximumBackChannelBytes = 100 }
    _ = try session.open(streaming(0), now: start)
    #expect(!session.send([payload("a")], now: start).endsBackChannel)
    #expect(session.send([payload(String(repeating: "b", count: 100))], now: start).endsBackChannel)
  }

  @Test("A polling request ends after one batch of arrays")
  func pollingEndsAfterOneBatch() throws {
    var session = session()
    _ = session.send([payload("a"), payload("b")], now: start)
    let batch = try session.open(polling(0), now: start)
    #expect(arrays(batch.frames) == ["1 [\"a\"]", "2 [\"b\"]"])
    #expect(batch.endsBackChannel)
    #expect(try session.open(polling(2), now: start) == WebChannelSession.Actions())
    let later = session.send([payload("c")], now: start)
    #expect(arrays(later.frames) == ["3 [\"c\"]"])
    #expect(later.endsBackChannel)
  }

  @Test("A polling request waits for its timeout, at most for the keep-alive interval")
  func pollingTimeout() throws {
    for (timeout, wait) in [(nil, 30), (5, 5), (600, 30)] as [(Int64?, Int64)] {
      var session = session()
      _ = try session.open(polling(0, timeout.map { .seconds($0) }), now: start)
      #expect(session.deadline == start + .seconds(wait))
      #expect(session.tick(now: start + .seconds(wait) - .nanoseconds(1)) == WebChannelSession.Actions())
      let end = session.tick(now: start + .seconds(wait))
      #expect(arrays(end.frames) == ["1 [\"noop\"]"])
      #expect(end.endsBackChannel)
    }
  }

  @Test("A new back channel replaces the old one and resends unacknowledged arrays")
  func newBackChannelReplacesOld() throws {
    var session = session()
    _ = try session.open(streaming(0), now: start)
    let old = session.backChannel
    _ = session.send([payload("a")], now: start)
    // The old back channel disconnected before any array arrived, so all arrays are sent again.
    let replay = try session.open(streaming(0), now: start)
    #expect(arrays(replay.frames) == ["1 [\"noop\"]", "2 [\"a\"]"])
    #expect(session.backChannel != old)
    session.disconnect(try #require(old), now: start)
    #expect(session.backChannel != nil)
  }

  @Test("Acknowledged arrays are removed, and impossible acknowledgements are rejected")
  func acknowledgedArraysAreRemoved() throws {
    var session = session()
    _ = session.send([payload("a"), payload("b"), payload("c")], now: start)
    let all = session.heldBytes
    try session.receive([], acknowledged: 2, now: start)
    #expect(session.heldBytes == all / 3)
    #expect(arrays(try session.open(streaming(2), now: start).frames) == ["3 [\"c\"]"])
    // A delayed request acknowledges fewer arrays, which has no effect.
    try session.receive([], acknowledged: 1, now: start)
    #expect(throws: WebChannelError.self) { try session.receive([], acknowledged: 4, now: start) }
    try session.receive([], acknowledged: 3, now: start)
    #expect(session.heldBytes == 0)
  }

  @Test(
    "The response to a POST reports the back channel's state, the last array and the unacknowledged bytes")
  func forwardResponse() throws {
    var session = session()
    #expect(String(buffer: session.forwardResponse) == "7\n[0,0,0]")
    _ = try session.open(streaming(0), now: start)
    _ = session.send([payload("a")], now: start)
    let held = session.heldBytes
    #expect(String(buffer: session.forwardResponse).hasSuffix("\n[1,2,\(held)]"))
    try session.receive([], acknowledged: 2, now: start)
    #expect(String(buffer: session.forwardResponse) == "7\n[1,2,0]")
  }

  @Test("A stream with too many unacknowledged bytes sends nothing until the client acknowledges")
  func backPressure() throws {
    var session = session {
      $0.maximumUnacknowledgedBytes = 1000
      $0.maximumBackChannelBytes = 500
    }
    _ = try session.open(streaming(0), now: start)
    let large = session.send([payload(String(repeating: "a", count: 2000))], now: start)
    #expect(large.endsBackChannel)
    #expect(!session.canSend)
    _ = try session.open(streaming(2), now: start)
    #expect(session.canSend)
  }

  @Test("A message whose number is too far above the next expected number is rejected")
  func messagesFarAheadAreRejected() throws {
    var session = session { $0.maximumGap = 10 }
    #expect(throws: WebChannelError.self) {
      try session.receive([.init(number: 10, bytes: ByteBuffer())], acknowledged: nil, now: start)
    }
    try session.receive([.init(number: 9, bytes: ByteBuffer(string: "x"))], acknowledged: nil, now: start)
    #expect(session.nextMessage() == nil)
    #expect(session.heldBytes > 0)
  }

  @Test("The counted bytes of small messages include their memory overhead")
  func messageOverheadCounts() throws {
    var session = session()
    let early = (2...1000).map { ForwardBody.Message(number: $0, bytes: ByteBuffer(string: "x")) }
    try session.receive(early + [.init(number: 1)], acknowledged: nil, now: start)
    #expect(session.heldBytes >= 1000 * 100)
    try session.receive([.init(number: 0)], acknowledged: nil, now: start)
    for _ in early { #expect(session.nextMessage() != nil) }
    #expect(session.heldBytes == 0)
  }

  @Test("The session reports when its queued messages exceed their byte limit")
  func pendingMessageLimit() throws {
    var session = session { $0.maximumPendingBytes = 1000 }
    let message = ByteBuffer(repeating: 0x20, count: 600)
    try session.receive([.init(number: 1, bytes: message)], acknowledged: nil, now: start)
    #expect(!session.exceedsPendingLimit)
    try session.receive([.init(number: 0, bytes: message)], acknowledged: nil, now: start)
    #expect(session.exceedsPendingLimit)
    _ = session.nextMessage()
    #expect(!session.exceedsPendingLimit)
  }

  @Test("A session expires after its idle timeout")
  func expires() throws {
    var session = session()
    #expect(session.deadline == start + .minutes(2))
    try session.receive([], acknowledged: nil, now: start + .seconds(60))
    #expect(!session.tick(now: start + .seconds(120)).endsSession)
    #expect(session.tick(now: start + .seconds(180)).endsSession)
  }

  @Test("A session does not expire while a back channel is open")
  func backChannelPreventsExpiry() throws {
    var session = session { $0.maximumBackChannelLifetime = .hours(1) }
    _ = try session.open(streaming(0), now: start)
    #expect(!session.tick(now: start + .minutes(10)).endsSession)
    let id = try #require(session.backChannel)
    session.disconnect(id, now: start + .minutes(10))
    #expect(!session.tick(now: start + .minutes(11)).endsSession)
    #expect(session.tick(now: start + .minutes(12)).endsSession)
  }

  @Test("The end of a stream is resent until the client acknowledges it")
  func endIsDelivered() throws {
    var session = session()
    try session.receive([.init(number: 0, bytes: ByteBuffer(string: "x"))], acknowledged: nil, now: start)
    _ = session.finish(WebChannelFrames.close, now: start)
    #expect(session.nextMessage() == nil, "a stream that has ended receives no message")
    #expect(session.send([payload("late")], now: start) == WebChannelSession.Actions())
    // Each back channel sends the end again until the client acknowledges it.
    for _ in 0..<2 {
      let steps = try session.open(streaming(0), now: start)
      #expect(arrays(steps.frames) == ["1 [\"close\"]"])
      #expect(steps.endsBackChannel)
    }
    #expect(throws: WebChannelError.unknownSession) { try session.open(streaming(1), now: start) }
    #expect(session.tick(now: start + .seconds(30)).endsSession)
  }
}
