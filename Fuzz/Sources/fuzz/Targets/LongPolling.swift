// Fuzz target: message chunks as parameters of long polls. Chunks in any order and with any repetition assemble to the
// same messages. Buffered bytes are bounded.

import NIOHTTP1
import RealtimeWire

@testable import Ports
@testable import RealtimeEndpoints

func fuzzLongPolling(_ input: UnsafeRawBufferPointer) throws {
  let uri = "/.lp?" + String(decoding: input, as: UTF8.self)
  guard let target = try? RequestTarget(uri) else { return }
  _ = try? LongPollRequest(
    HTTPRequestHead(version: .http1_1, method: .GET, uri: uri), target, FuzzedEndpoint.realtime)
  guard let all = try? Segment.all(in: target) else { return }
  // The first of several chunks with the same number counts.
  var seen: Set<Int> = []
  let segments = all.filter { seen.insert($0.number).inserted }.sorted { $0.number < $1.number }

  let (inOrder, fault) = try assemble(segments)
  let (reversed, otherFault) = try assemble(segments.reversed() + segments)
  // A chunk that arrives early takes buffer space. One order may exceed the buffer although the other does not.
  if fault == .tooFarAhead || otherFault == .tooFarAhead { return }
  try require(fault == otherFault, "the order of pieces changes \(String(describing: fault))")
  // A fault discards the messages that its call had completed.
  if fault == nil { try require(inOrder == reversed, "the order of pieces changes the messages") }
}

private func assemble(
  _ segments: [Segment]
) throws -> ([MessageAssembler.Received], SegmentAssembler.Fault?) {
  let (bytes, window) = (600, 16)
  var assembler = SegmentAssembler(maximumBytes: bytes, window: window)
  var messages: [MessageAssembler.Received] = []
  for segment in segments {
    do throws(SegmentAssembler.Fault) {
      messages += try assembler.receive(segment)
    } catch { return (messages, error) }
    // The base64 of a message takes four bytes for three. Of an oversized message, the first 4,096 bytes are kept.
    try require(
      assembler.heldBytes <= bytes + window * 256 + max(4096, bytes / 3 * 4 + 4), "too much is kept")
  }
  for case .assembled(let message) in messages {
    try require(message.count <= bytes, "a message of \(message.count) bytes is larger than the limit")
  }
  return (messages, nil)
}
