// Fuzz target: WebChannel. It covers bodies of POSTs, request parameters, and a session whose client may do
// anything in any order. Each message is delivered once and in order. Each array is retained until it is
// acknowledged, and written once to a back channel.

import NIOCore

@testable import FirestoreEndpoints
@testable import Ports

func fuzzWebChannel(_ input: UnsafeRawBufferPointer) throws {
  let text = String(decoding: input, as: UTF8.self)
  if let target = try? RequestTarget("/?" + text) {
    for isPost in [false, true] {
      do throws(WebChannelError) {
        _ = try WebChannelOperation(isPost: isPost, target)
      } catch { try require(error.status == 400 && !error.message.isEmpty, "\(error) has no message") }
    }
  }
  do {
    try check(try ForwardBody(ByteBuffer(bytes: input), limits: .small))
  } catch let error as WebChannelError {
    try require(error.status == 400 && !error.message.isEmpty, "\(error) has no message")
  }
  var conversation = Conversation()
  for byte in input.prefix(4096) { try conversation.step(byte) }
}

private func check(_ body: ForwardBody) throws {
  let limits = WebChannelLimits.small
  let numbers = body.messages.map(\.number)
  try require(numbers.count <= limits.maximumMessages, "more messages than are allowed")
  try require(zip(numbers, numbers.dropFirst()).allSatisfy(<) && numbers.allSatisfy { $0 >= 0 }, "no order")
  var together = IncomingMessages(limits)
  guard (try? together.receive(body.messages)) != nil else { return }
  var apart = IncomingMessages(limits)
  for message in body.messages.reversed() + body.messages { try apart.receive([message]) }
  try require(together.heldBytes == apart.heldBytes, "the order of POSTs changes what is held")
  while let message = together.next() {
    try require(apart.next() == message, "the order of POSTs changes the messages")
  }
  try require(apart.next() == nil, "a message comes twice")
}

/// A session, and the state that its client may expect.
private struct Conversation {
  private let limits = WebChannelLimits.small
  private var session: WebChannelSession
  private var now = NIODeadline.uptimeNanoseconds(0)
  /// The number of the next message for the stream.
  private var nextMessage = 0
  private var sent: Set<Int> = []
  private var isOver = false
  private var isFinished = false
  /// The back channel: its ID, the last array that its client has, and the number of received bytes.
  private var backChannel: (id: Int, last: Int, bytes: Int)?
  private var payloads = 0

  init() { session = WebChannelSession(limits, now: now) }

  mutating func step(_ byte: UInt8) throws {
    if isOver { return }
    let operand = Int(byte >> 3)
    switch byte & 7 {
    case 0: try receive(nextMessage + operand % 4, acknowledged: nil)
    case 1: try receive(operand, acknowledged: operand - 2)
    case 2: try open(BackChannelRequest(acknowledged: operand - 1, isStreaming: true))
    case 3:
      try open(
        BackChannelRequest(
          acknowledged: backChannel?.last ?? operand - 1, isStreaming: operand % 2 == 0,
          timeout: .seconds(Int64(operand)))
      )
    case 4:
      if let backChannel { session.disconnect(backChannel.id, now: now) }
      backChannel = nil
    case 5:
      payloads += 1
      let payload = ByteBuffer(string: "\"\(String(repeating: "é😀", count: operand * 8))\"")
      try apply(
        operand == 31 ? session.finish(payload, now: now) : session.send([payload, payload], now: now))
      if operand == 31 { isFinished = true }
    default:
      now = now + .seconds(Int64(operand + 1))
      try apply(session.tick(now: now))
    }
    try require(session.backChannel == backChannel?.id, "another back channel is open")
  }

  private mutating func receive(_ number: Int, acknowledged: Int?) throws {
    let message = ForwardBody.Message(number: number, bytes: ByteBuffer(integer: number))
    guard (try? session.receive([message], acknowledged: acknowledged, now: now)) != nil else { return }
    if !isFinished { sent.insert(number) }
    while let message = session.nextMessage() {
      try require(!isFinished, "a message after the end")
      try require(message.getInteger(at: message.readerIndex) == nextMessage, "a message in another order")
      try require(sent.contains(nextMessage), "a message that nobody sent")
      nextMessage += 1
    }
  }

  private mutating func open(_ request: BackChannelRequest) throws {
    do {
      let actions = try session.open(request, now: now)
      backChannel = (0, request.acknowledged, 0)
      if !actions.endsBackChannel, let id = session.backChannel { backChannel?.id = id }
      try apply(actions)
    } catch let error as WebChannelError {
      try require(!error.message.isEmpty, "an error without a message")
    }
  }

  private mutating func apply(_ actions: WebChannelSession.Actions) throws {
    if actions.frames.readableBytes > 0 {
      try require(backChannel != nil, "frames without a back channel")
      for id in try ids(of: actions.frames) {
        try require(id > backChannel?.last ?? .max, "an array comes twice")
        backChannel?.last = id
      }
      backChannel?.bytes += actions.frames.readableBytes
    }
    if actions.endsBackChannel {
      try require(actions.endsSession || backChannel?.bytes ?? 0 > 0, "a back channel ends without a frame")
      backChannel = nil
    }
    isOver = actions.endsSession
  }

  /// The numbers of the arrays in complete ASCII frames.
  private func ids(of frames: ByteBuffer) throws -> [Int] {
    var ids: [Int] = []
    var rest = frames.readableBytesView
    try require(rest.allSatisfy { $0 < 0x80 }, "frames are not ASCII")
    while let end = rest.firstIndex(of: 0x0A) {
      let length = try require(Int(String(decoding: rest[..<end], as: UTF8.self)), "a frame without a length")
      let chunk = rest[(end + 1)...].prefix(length)
      try require(chunk.count == length && chunk.starts(with: Array("[[".utf8)), "an incomplete frame")
      let digits = chunk.dropFirst(2).prefix { (0x30...0x39).contains($0) }
      ids.append(try require(Int(String(decoding: digits, as: UTF8.self)), "an array without a number"))
      rest = rest[(end + 1 + length)...]
    }
    try require(rest.isEmpty, "bytes after the frames")
    return ids
  }
}

extension WebChannelLimits {
  /// Small limits, which a conversation of a few steps reaches.
  fileprivate static let small: WebChannelLimits = {
    var limits = WebChannelLimits()
    limits.maximumMessages = 8
    limits.maximumGap = 16
    limits.maximumUnacknowledgedBytes = 4096
    limits.maximumBackChannelBytes = 2048
    return limits
  }()
}
