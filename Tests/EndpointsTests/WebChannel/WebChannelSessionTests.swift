// The rules of one session, on a clock of the test's own.

import NIOCore
import RealtimeModel
import Testing

@testable import Endpoints

@Suite struct WebChannelSessionTests {
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

  @Test func streamsAtOnce() throws {
    var session = session()
    let first = try session.open(streaming(0), now: start)
    #expect(arrays(first.frames) == ["1 [\"noop\"]"])
    #expect(!first.endsBackChannel)
    let next = session.send([payload("a"), payload("b")], now: start)
    #expect(arrays(next.frames) == ["2 [\"a\"]", "3 [\"b\"]"])
    #expect(!next.endsBackChannel)
  }

  @Test func whatWaitsComesFirstInsteadOfANoop() throws {
    var session = session()
    #expect(session.send([payload("a")], now: start).frames.readableBytes == 0)
    #expect(arrays(try session.open(streaming(0), now: start).frames) == ["1 [\"a\"]"])
  }

  @Test func breaksItsSilence() throws {
    var session = session { $0.backChannelLife = .minutes(5) }
    _ = try session.open(streaming(0), now: start)
    #expect(session.deadline == start + .seconds(30))
    #expect(session.tick(now: start + .seconds(29)) == WebChannelSession.Steps())
    #expect(arrays(session.tick(now: start + .seconds(30)).frames) == ["2 [\"noop\"]"])
    _ = session.send([payload("a")], now: start + .seconds(50))
    #expect(session.deadline == start + .seconds(80))
  }

  @Test func streamingEndsInTime() throws {
    var session = session()
    _ = try session.open(streaming(0), now: start)
    _ = session.tick(now: start + .seconds(30))
    let end = session.tick(now: start + .seconds(60))
    #expect(end.endsBackChannel && end.frames.readableBytes == 0)
    #expect(session.backChannel == nil)
  }

  @Test func streamingEndsAfterManyBytes() throws {
    var session = session { $0.backChannelBytes = 100 }
    _ = try session.open(streaming(0), now: start)
    #expect(!session.send([payload("a")], now: start).endsBackChannel)
    #expect(session.send([payload(String(repeating: "b", count: 100))], now: start).endsBackChannel)
  }

  @Test func pollingTakesOneBatch() throws {
    var session = session()
    _ = session.send([payload("a"), payload("b")], now: start)
    let batch = try session.open(polling(0), now: start)
    #expect(arrays(batch.frames) == ["1 [\"a\"]", "2 [\"b\"]"])
    #expect(batch.endsBackChannel)
    #expect(try session.open(polling(2), now: start) == WebChannelSession.Steps())
    let later = session.send([payload("c")], now: start)
    #expect(arrays(later.frames) == ["3 [\"c\"]"])
    #expect(later.endsBackChannel)
  }

  @Test func pollingWaitsAsLongAsAsked() throws {
    for (timeout, wait) in [(nil, 30), (5, 5), (600, 30)] as [(Int64?, Int64)] {
      var session = session()
      _ = try session.open(polling(0, timeout.map { .seconds($0) }), now: start)
      #expect(session.deadline == start + .seconds(wait))
      #expect(session.tick(now: start + .seconds(wait) - .nanoseconds(1)) == WebChannelSession.Steps())
      let end = session.tick(now: start + .seconds(wait))
      #expect(arrays(end.frames) == ["1 [\"noop\"]"])
      #expect(end.endsBackChannel)
    }
  }

  @Test func newBackChannelReplacesTheOld() throws {
    var session = session()
    _ = try session.open(streaming(0), now: start)
    let old = session.backChannel
    _ = session.send([payload("a")], now: start)
    // The old one was cut before anything of it arrived: all comes again.
    let replay = try session.open(streaming(0), now: start)
    #expect(arrays(replay.frames) == ["1 [\"noop\"]", "2 [\"a\"]"])
    #expect(session.backChannel != old)
    session.lose(try #require(old), now: start)
    #expect(session.backChannel != nil)
  }

  @Test func acknowledgedArraysAreForgotten() throws {
    var session = session()
    _ = session.send([payload("a"), payload("b"), payload("c")], now: start)
    let all = session.heldBytes
    try session.receive([], acknowledged: 2, now: start)
    #expect(session.heldBytes == all / 3)
    #expect(arrays(try session.open(streaming(2), now: start).frames) == ["3 [\"c\"]"])
    // A request that was overtaken acknowledges less, which changes nothing.
    try session.receive([], acknowledged: 1, now: start)
    #expect(throws: WebChannelRefusal.self) { try session.receive([], acknowledged: 4, now: start) }
    try session.receive([], acknowledged: 3, now: start)
    #expect(session.heldBytes == 0)
  }

  @Test func forwardAnswer() throws {
    var session = session()
    #expect(String(buffer: session.forwardAnswer) == "7\n[0,0,0]")
    _ = try session.open(streaming(0), now: start)
    _ = session.send([payload("a")], now: start)
    let held = session.heldBytes
    #expect(String(buffer: session.forwardAnswer).hasSuffix("\n[1,2,\(held)]"))
    try session.receive([], acknowledged: 2, now: start)
    #expect(String(buffer: session.forwardAnswer) == "7\n[1,2,0]")
  }

  @Test func theStreamWaitsForRoom() throws {
    var session = session {
      $0.maximumRetainedBytes = 1000
      $0.backChannelBytes = 500
    }
    _ = try session.open(streaming(0), now: start)
    let large = session.send([payload(String(repeating: "a", count: 2000))], now: start)
    #expect(large.endsBackChannel)
    #expect(!session.hasRoom)
    _ = try session.open(streaming(2), now: start)
    #expect(session.hasRoom)
  }

  @Test func messagesFarAheadAreRefused() throws {
    var session = session { $0.maximumGap = 10 }
    #expect(throws: WebChannelRefusal.self) {
      try session.receive([.init(number: 10, bytes: ByteBuffer())], acknowledged: nil, now: start)
    }
    try session.receive([.init(number: 9, bytes: ByteBuffer(string: "x"))], acknowledged: nil, now: start)
    #expect(session.nextMessage() == nil)
    #expect(session.heldBytes > 0)
  }

  @Test func smallMessagesCountAsWhatTheyTakeUp() throws {
    var session = session()
    let early = (2...1000).map { ForwardBody.Message(number: $0, bytes: ByteBuffer(string: "x")) }
    try session.receive(early + [.init(number: 1)], acknowledged: nil, now: start)
    #expect(session.heldBytes >= 1000 * 100)
    try session.receive([.init(number: 0)], acknowledged: nil, now: start)
    for _ in early { #expect(session.nextMessage() != nil) }
    #expect(session.heldBytes == 0)
  }

  @Test func tooManyBytesOfMessages() throws {
    var session = session { $0.maximumWaitingBytes = 1000 }
    let message = ByteBuffer(repeating: 0x20, count: 600)
    try session.receive([.init(number: 1, bytes: message)], acknowledged: nil, now: start)
    #expect(!session.isOverwhelmed)
    try session.receive([.init(number: 0, bytes: message)], acknowledged: nil, now: start)
    #expect(session.isOverwhelmed)
    _ = session.nextMessage()
    #expect(!session.isOverwhelmed)
  }

  @Test func expires() throws {
    var session = session()
    #expect(session.deadline == start + .minutes(2))
    try session.receive([], acknowledged: nil, now: start + .seconds(60))
    #expect(!session.tick(now: start + .seconds(120)).isOver)
    #expect(session.tick(now: start + .seconds(180)).isOver)
  }

  @Test func doesNotExpireWithABackChannel() throws {
    var session = session { $0.backChannelLife = .hours(1) }
    _ = try session.open(streaming(0), now: start)
    #expect(!session.tick(now: start + .minutes(10)).isOver)
    let id = try #require(session.backChannel)
    session.lose(id, now: start + .minutes(10))
    #expect(!session.tick(now: start + .minutes(11)).isOver)
    #expect(session.tick(now: start + .minutes(12)).isOver)
  }

  @Test func farewell() throws {
    var session = session()
    try session.receive([.init(number: 0, bytes: ByteBuffer(string: "x"))], acknowledged: nil, now: start)
    _ = session.finish(WebChannelFrames.close, now: start)
    #expect(session.nextMessage() == nil, "a stream that has ended takes nothing")
    #expect(session.send([payload("late")], now: start) == WebChannelSession.Steps())
    // Until the client has heard of it, it comes with each back channel.
    for _ in 0..<2 {
      let steps = try session.open(streaming(0), now: start)
      #expect(arrays(steps.frames) == ["1 [\"close\"]"])
      #expect(steps.endsBackChannel)
    }
    #expect(throws: WebChannelRefusal.unknownSession) { try session.open(streaming(1), now: start) }
    #expect(session.tick(now: start + .seconds(30)).isOver)
  }
}
