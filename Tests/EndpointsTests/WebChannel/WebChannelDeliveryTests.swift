// Random sessions over a network that loses, repeats and overtakes requests and cuts answers anywhere: each message and
// each array arrives exactly once, in order.

import JSON
import NIOCore
import RandomModels
import RealtimeModel
import Testing

@testable import Endpoints

@Suite struct WebChannelDeliveryTests {
  @Test func exactlyOnceInOrder() throws {
    for seed in 0..<100 {
      var run = RandomSession(seed: UInt64(seed))
      try run.play(300)
      try run.settle()
      #expect(run.delivered == Array(0..<run.sentMessages).map { "m\($0)" }, "seed \(seed)")
      #expect(run.received == Array(0..<run.sentArrays).map { "a\($0)" }, "seed \(seed)")
      #expect(run.session.heldBytes == 0, "seed \(seed)")
    }
  }
}

/// A client, a server's session, and a network between them.
private struct RandomSession {
  private struct Post {
    var numbers: Range<Int>
    var acknowledged: Int
  }

  private struct Back {
    var id: WebChannelSession.BackChannelID
    var acknowledged: Int
    var lastOnIt: Int
    var bytes = ByteBuffer()
    var hasEnded = false
  }

  private var random: SeededGenerator
  var session: WebChannelSession
  private var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
  private(set) var sentMessages = 0
  private(set) var sentArrays = 0
  private(set) var delivered: [String] = []
  private(set) var received: [String] = []
  /// POSTs on their way; a lost one is sent again, one that arrived but whose answer was lost too.
  private var posts: [Post] = []
  private var back: Back?
  private var lastArray = 0
  /// Whether the back channel is broken and the server has not heard of it.
  private var isHalfOpen = false

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    var limits = WebChannelLimits()
    limits.backChannelBytes = 200
    limits.maximumRetainedBytes = 400
    limits.idleTimeout = .hours(24)
    session = WebChannelSession(limits, now: now)
  }

  mutating func play(_ steps: Int) throws {
    for _ in 0..<steps {
      now = now + .milliseconds(Int64(random.below(3000)))
      switch random.below(9) {
      case 0: newPost()
      case 1, 2: try arrive()
      case 3: if back == nil { try open() }
      case 4: read(random.below(60))
      case 5: if random.below(3) == 0 { cut() }
      case 6, 7: send()
      default: apply(session.tick(now: now))
      }
      if random.below(4) == 0 { takeMessages(1) }
    }
  }

  /// Everything that is on its way arrives.
  mutating func settle() throws {
    while !posts.isEmpty { try arrive(loss: false) }
    takeMessages(.max)
    for _ in 0..<1000 where received.count < sentArrays || session.heldBytes > 0 {
      now = now + .seconds(1)
      if back == nil { try open() }
      read(.max)
      try session.receive([], acknowledged: lastArray, now: now)
      apply(session.tick(now: now))
    }
  }

  private mutating func newPost() {
    let count = random.below(4)
    posts.append(Post(numbers: sentMessages..<sentMessages + count, acknowledged: lastArray))
    sentMessages += count
  }

  /// Any POST arrives, and is sent again if it or its answer was lost.
  private mutating func arrive(loss: Bool = true) throws {
    guard !posts.isEmpty else { return }
    let index = random.below(posts.count)
    let post = posts[index]
    let fate = loss ? random.below(3) : 2
    if fate > 0 {
      try session.receive(
        try body(of: post).messages.shuffled(using: &random), acknowledged: post.acknowledged, now: now)
    }
    if fate == 2 { posts.remove(at: index) }
  }

  /// The body as a client writes it, whose offset may be lower than its first message.
  private mutating func body(of post: Post) throws -> ForwardBody {
    let offset = random.below(post.numbers.lowerBound + 1)
    var text = "count=\(post.numbers.count)&ofs=\(offset)"
    for number in post.numbers { text += "&req\(number - offset)___data__=m\(number)" }
    return try ForwardBody(ByteBuffer(string: text), limits: WebChannelLimits())
  }

  private mutating func takeMessages(_ most: Int) {
    var left = most
    while left > 0, let message = session.nextMessage() {
      delivered.append(String(buffer: message))
      left -= 1
    }
  }

  private mutating func send() {
    guard session.hasRoom else { return }
    let payloads = (0..<random.below(3)).map { ByteBuffer(string: "[\"a\(sentArrays + $0)\"]") }
    sentArrays += payloads.count
    apply(session.send(payloads, now: now))
  }

  private mutating func open() throws {
    let request = BackChannelRequest(
      acknowledged: lastArray, isStreaming: random.below(2) == 0, timeout: .seconds(Int64(random.below(40))))
    let steps = try session.open(request, now: now)
    isHalfOpen = false
    back = Back(id: session.backChannel ?? -1, acknowledged: lastArray, lastOnIt: lastArray)
    apply(steps)
    if request.isStreaming { #expect(steps.frames.readableBytes > 0) }
  }

  private mutating func apply(_ steps: WebChannelSession.Steps) {
    #expect(!steps.isOver)
    guard steps.frames.readableBytes > 0 || steps.endsBackChannel else { return }
    guard var back, !back.hasEnded else {
      if isHalfOpen { return }
      Issue.record("something is written to no back channel")
      return
    }
    for array in ReceivedArray.all(steps.frames) {
      #expect(array.id > back.lastOnIt, "an array is doubled or goes back")
      back.lastOnIt = array.id
    }
    back.bytes.writeImmutableBuffer(steps.frames)
    back.hasEnded = steps.endsBackChannel
    self.back = back
  }

  /// The client reads so many bytes, which may end within a frame.
  private mutating func read(_ most: Int) {
    guard var back else { return }
    let all = back.bytes
    var seen = all.getSlice(at: all.readerIndex, length: min(most, all.readableBytes)) ?? ByteBuffer()
    let before = seen.readerIndex
    for array in ReceivedArray.take(&seen) where array.id > lastArray {
      lastArray = array.id
      if let text = array.payload.array?.first?.string, text != "noop" { received.append(text) }
    }
    back.bytes.moveReaderIndex(forwardBy: seen.readerIndex - before)
    self.back = back.hasEnded && back.bytes.readableBytes == 0 ? nil : back
  }

  /// The back channel breaks; its server may hear of that later, or never.
  private mutating func cut() {
    guard let back else { return }
    self.back = nil
    isHalfOpen = !back.hasEnded && random.below(2) == 0
    if !back.hasEnded, !isHalfOpen { session.lose(back.id, now: now) }
  }
}
