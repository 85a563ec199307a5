// Tests of WebChannel delivery: random sessions over a simulated network.
//
// Messages go to the server in POST requests, arrays go to the client on a long response, the back channel. The
// network loses, repeats and reorders requests, and truncates responses at any byte. Each message and each array
// must arrive exactly once, in order.

import JSON
import NIOCore
import RandomModels
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import FirestoreEndpoints

@Suite("WebChannel delivery")
struct WebChannelDeliveryTests {
  @Test("An unreliable network delivers each message and array exactly once, in order")
  func exactlyOnceInOrder() throws {
    for seed in 0..<100 {
      var run = RandomSession(seed: UInt64(seed))
      try run.play(300)
      try run.deliverAll()
      #expect(run.delivered == Array(0..<run.sentMessages).map { "m\($0)" }, "seed \(seed)")
      #expect(run.received == Array(0..<run.sentArrays).map { "a\($0)" }, "seed \(seed)")
      #expect(run.session.heldBytes == 0, "seed \(seed)")
    }
  }
}

/// A simulated client, a session of the server, and the network between them.
private struct RandomSession {
  private struct Post {
    var numbers: Range<Int>
    var acknowledged: Int
  }

  private struct Back {
    var id: WebChannelSession.BackChannelID
    var acknowledged: Int
    var lastWritten: Int
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
  /// POSTs in flight. The client resends a POST if the request or its response was lost.
  private var posts: [Post] = []
  private var back: Back?
  private var lastArray = 0
  /// Whether the back channel has disconnected and the server has not detected it.
  private var isHalfOpen = false

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    var limits = WebChannelLimits()
    limits.maximumBackChannelBytes = 200
    limits.maximumUnacknowledgedBytes = 400
    limits.idleTimeout = .hours(24)
    session = WebChannelSession(limits, now: now)
  }

  mutating func play(_ steps: Int) throws {
    for _ in 0..<steps {
      now = now + .milliseconds(Int64(random.below(3000)))
      switch random.below(9) {
      case 0: newPost()
      case 1, 2: try deliverPost()
      case 3: if back == nil { try open() }
      case 4: read(random.below(60))
      case 5: if random.below(3) == 0 { disconnect() }
      case 6, 7: send()
      default: apply(session.tick(now: now))
      }
      if random.below(4) == 0 { receiveMessages(atMost: 1) }
    }
  }

  /// Delivers every POST in flight without losses, and then reads until all arrays have arrived and are
  /// acknowledged.
  mutating func deliverAll() throws {
    while !posts.isEmpty { try deliverPost(isLossy: false) }
    receiveMessages(atMost: .max)
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

  /// Delivers a random POST, or loses the POST or its response. A lost POST stays in flight.
  private mutating func deliverPost(isLossy: Bool = true) throws {
    guard !posts.isEmpty else { return }
    let index = random.below(posts.count)
    let post = posts[index]
    let fate = isLossy ? random.below(3) : 2
    if fate > 0 {
      try session.receive(
        try body(of: post).messages.shuffled(using: &random), acknowledged: post.acknowledged, now: now)
    }
    if fate == 2 { posts.remove(at: index) }
  }

  /// Returns the body as a client encodes it. Its offset may be lower than the number of its first message.
  private mutating func body(of post: Post) throws -> ForwardBody {
    let offset = random.below(post.numbers.lowerBound + 1)
    var text = "count=\(post.numbers.count)&ofs=\(offset)"
    for number in post.numbers { text += "&req\(number - offset)___data__=m\(number)" }
    return try ForwardBody(ByteBuffer(string: text), limits: WebChannelLimits())
  }

  private mutating func receiveMessages(atMost maximum: Int) {
    var remaining = maximum
    while remaining > 0, let message = session.nextMessage() {
      delivered.append(String(buffer: message))
      remaining -= 1
    }
  }

  private mutating func send() {
    guard session.canSend else { return }
    let payloads = (0..<random.below(3)).map { ByteBuffer(string: "[\"a\(sentArrays + $0)\"]") }
    sentArrays += payloads.count
    apply(session.send(payloads, now: now))
  }

  private mutating func open() throws {
    let request = BackChannelRequest(
      acknowledged: lastArray, isStreaming: random.below(2) == 0, timeout: .seconds(Int64(random.below(40))))
    let actions = try session.open(request, now: now)
    isHalfOpen = false
    back = Back(id: session.backChannel ?? -1, acknowledged: lastArray, lastWritten: lastArray)
    apply(actions)
    if request.isStreaming { #expect(actions.frames.readableBytes > 0) }
  }

  private mutating func apply(_ actions: WebChannelSession.Actions) {
    #expect(!actions.endsSession)
    guard actions.frames.readableBytes > 0 || actions.endsBackChannel else { return }
    guard var back, !back.hasEnded else {
      if isHalfOpen { return }
      Issue.record("frames are written without a back channel")
      return
    }
    for array in ReceivedArray.all(actions.frames) {
      #expect(array.id > back.lastWritten, "an array is repeated or out of order")
      back.lastWritten = array.id
    }
    back.bytes.writeImmutableBuffer(actions.frames)
    back.hasEnded = actions.endsBackChannel
    self.back = back
  }

  /// Reads up to a number of bytes, which may end inside a frame.
  private mutating func read(_ maximum: Int) {
    guard var back else { return }
    let all = back.bytes
    var readBytes = all.getSlice(at: all.readerIndex, length: min(maximum, all.readableBytes)) ?? ByteBuffer()
    let before = readBytes.readerIndex
    for array in ReceivedArray.consume(&readBytes) where array.id > lastArray {
      lastArray = array.id
      if let text = array.payload.array?.first?.string, text != "noop" { received.append(text) }
    }
    back.bytes.moveReaderIndex(forwardBy: readBytes.readerIndex - before)
    self.back = back.hasEnded && back.bytes.readableBytes == 0 ? nil : back
  }

  /// Disconnects the back channel. At random, the server does not detect it.
  private mutating func disconnect() {
    guard let back else { return }
    self.back = nil
    isHalfOpen = !back.hasEnded && random.below(2) == 0
    if !back.hasEnded, !isHalfOpen { session.disconnect(back.id, now: now) }
  }
}
