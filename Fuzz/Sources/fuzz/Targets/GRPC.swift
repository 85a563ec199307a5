// Fuzz target: gRPC framing. Messages are the same however their bytes are split, and headers never trap.

import GRPCFraming
import NIOCore
import NIOHPACK

func fuzzGRPC(_ input: UnsafeRawBufferPointer) throws {
  let complete = messages(of: [input[...]])
  let cut = input.isEmpty ? 0 : Int(input[0]) % (input.count + 1)
  let parts = messages(of: [input[..<cut], input[cut...]])
  try require(complete == parts, "the division of the bytes changes the messages")

  let text = String(decoding: input, as: UTF8.self)
  var server = GRPCServerStream(
    maximumMessageSize: 1 << 16, maximumHeaderListSize: 1 << 16, encodings: GRPCEncodings(["gzip"]))
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  let headers: HPACKHeaders = [
    ":method": "POST", ":scheme": "http", ":path": lines.first ?? "", "te": "trailers",
    "content-type": lines.count > 1 ? lines[1] : "application/grpc",
    "grpc-timeout": lines.count > 2 ? lines[2] : "1S",
    "grpc-encoding": lines.count > 3 ? lines[3] : "gzip",
  ]
  if (try? server.receive(headers: headers, endStream: false)) != nil {
    server.receive(data: ByteBuffer(bytes: input), endStream: true)
    while let event = try? server.next() { if case .halfClose = event { break } }
  }
  var client = GRPCClientStream(maximumMessageSize: 1 << 16)
  client.receive(
    headers: [":status": "200", "content-type": "application/grpc"], endStream: false)
  client.receive(data: ByteBuffer(bytes: input), endStream: false)
  client.receive(headers: ["grpc-status": lines[0], "grpc-message": text], endStream: true)
  var ends = 0
  while let event = client.next() { if case .end = event { ends += 1 } }
  try require(ends == 1, "a call ended \(ends) times")
}

/// The messages in the bytes, and whether an error follows them.
private func messages(of parts: [Slice<UnsafeRawBufferPointer>]) -> [[UInt8]?] {
  var parser = GRPCMessageParser(maximumMessageSize: 1 << 16)
  var messages: [[UInt8]?] = []
  for part in parts {
    parser.append(ByteBuffer(bytes: part))
    do {
      while let message = try parser.next() { messages.append(Array(message.readableBytesView)) }
    } catch {
      messages.append(nil)
      return messages
    }
  }
  return messages
}
