// Tests the server side of a gRPC stream: which requests it accepts, its exact responses to rejected requests, and the
// order of its events.

import GRPCFraming
import NIOCore
import NIOHPACK
import Testing

@Suite("gRPC server stream")
struct ServerStreamTests {
  private func request(_ changes: [(String, String?)] = []) -> HPACKHeaders {
    var headers = GRPCClientStream.requestHeaders(
      path: "/google.firestore.v1.Firestore/Commit", authority: "localhost", scheme: "http")
    for (name, value) in changes {
      headers.remove(name: name)
      if let value { headers.add(name: name, value: value) }
    }
    return headers
  }

  private func rejection(_ headers: HPACKHeaders) -> GRPCRejection? {
    var stream = GRPCServerStream()
    do {
      _ = try stream.receive(headers: headers, endStream: false)
      return nil
    } catch {
      #expect(stream.isFinished)
      #expect(stream.finish(.ok) == nil)
      return error
    }
  }

  @Test("A client's headers are accepted and yield service, method, timeout and metadata")
  func acceptsAClientsHeaders() throws {
    var stream = GRPCServerStream()
    let headers = GRPCClientStream.requestHeaders(
      path: "/google.firestore.v1.Firestore/Commit", authority: "localhost:8080", scheme: "http",
      timeout: GRPCTimeout(nanoseconds: 1_500_000_000), metadata: [("authorization", "Bearer owner")])
    let head = try stream.receive(headers: headers, endStream: false)
    #expect(head.service == "google.firestore.v1.Firestore")
    #expect(head.method == "Commit")
    #expect(head.timeout?.nanoseconds == 1_500_000_000)
    #expect(head.metadata("authorization") == "Bearer owner")
  }

  @Test(
    "Content types of gRPC are accepted",
    arguments: [
      "application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8", "Application/gRPC",
    ])
  func contentTypes(type: String) {
    #expect(rejection(request([("content-type", type)])) == nil)
  }

  @Test(
    "Other content types are rejected with HTTP 415",
    arguments: ["application/grpc-web", "application/json", "application/grpc+json", "application/grp", nil])
  func foreignContentTypes(type: String?) {
    let response = rejection(request([("content-type", type)]))
    #expect(response?.headers.first(name: ":status") == "415")
  }

  @Test("Methods other than POST are rejected with HTTP 405 and the allowed method")
  func wrongMethod() {
    let response = rejection(request([(":method", "GET")]))
    #expect(response?.headers.first(name: ":status") == "405")
    #expect(
      response?.headers.first { _ in true }?.name == ":status", "HTTP/2 requires pseudo-headers to come first"
    )
    #expect(response?.headers.first(name: "allow") == "POST")
  }

  @Test("An unsupported encoding is UNIMPLEMENTED and lists the accepted encodings")
  func unsupportedEncoding() {
    let response = rejection(request([("grpc-encoding", "gzip")]))
    #expect(response?.status.code == .unimplemented)
    #expect(response?.headers.first(name: "grpc-status") == "12")
    #expect(response?.headers.first(name: "grpc-accept-encoding") == "identity")
    #expect(response?.headers.first(name: ":status") == "200")
    #expect(rejection(request([("grpc-encoding", "identity")])) == nil)
  }

  @Test("Every response lists the accepted encodings, and compressed messages are delivered compressed")
  func acceptedEncodings() throws {
    var stream = GRPCServerStream(encodings: GRPCEncodings(["gzip", "deflate"]))
    let head = try stream.receive(headers: request([("grpc-encoding", "gzip")]), endStream: false)
    #expect(head.encoding == "gzip")
    stream.receive(data: ByteBuffer(bytes: [1, 0, 0, 0, 1, 7, 0, 0, 0, 0, 1, 8]), endStream: true)
    #expect(try stream.next() == .compressedMessage(ByteBuffer(bytes: [7])))
    #expect(try stream.next() == .message(ByteBuffer(bytes: [8])))
    #expect(stream.start()?.first(name: "grpc-accept-encoding") == "gzip,deflate,identity")

    var other = GRPCServerStream(encodings: GRPCEncodings(["gzip", "deflate"]))
    #expect {
      try other.receive(headers: request([("grpc-encoding", "br")]), endStream: false)
    } throws: { error in
      let rejection = error as? GRPCRejection
      return rejection?.status.code == .unimplemented
        && rejection?.headers.first(name: "grpc-accept-encoding") == "gzip,deflate,identity"
        && rejection?.status.message.contains("gzip,deflate,identity") == true
    }
  }

  @Test("A compressed message in a call without an encoding is INTERNAL")
  func unnamedEncoding() throws {
    for encoding in [nil, "identity"] {
      var stream = GRPCServerStream(encodings: GRPCEncodings(["gzip"]))
      _ = try stream.receive(headers: request([("grpc-encoding", encoding)]), endStream: false)
      stream.receive(data: ByteBuffer(bytes: [1, 0, 0, 0, 1, 7]), endStream: true)
      #expect { try stream.next() } throws: { ($0 as? GRPCStatus)?.code == .internal }
    }
  }

  @Test("A message over the limit is reported in order, and all later input is discarded", arguments: 0...1)
  func oversized(flag: UInt8) throws {
    var stream = GRPCServerStream(maximumMessageSize: 100, encodings: GRPCEncodings(["gzip"]))
    _ = try stream.receive(headers: request([("grpc-encoding", "gzip")]), endStream: false)
    var bytes = ByteBuffer(bytes: [0, 0, 0, 0, 1, 7, flag, 0, 0, 0, 101])
    bytes.writeRepeatingByte(0, count: 50)
    stream.receive(data: bytes, endStream: false)
    #expect(try stream.next() == .message(ByteBuffer(bytes: [7])))
    #expect(try stream.next() == .oversizedMessage(101))
    #expect(stream.bufferedBytes == 0)
    for end in [false, true] {
      stream.receive(data: ByteBuffer(bytes: [0, 0, 0, 0, 0]), endStream: end)
      #expect(stream.bufferedBytes == 0)
      #expect(try stream.next() == nil)
    }
    #expect(stream.start() != nil && stream.finish(.ok) != nil)
  }

  @Test("Headers over the limit are RESOURCE_EXHAUSTED")
  func headerList() throws {
    let headers = request([("x-long", String(repeating: "x", count: 1_000))])
    var exact = GRPCServerStream(maximumHeaderListSize: headers.listSize)
    _ = try exact.receive(headers: headers, endStream: false)
    var stream = GRPCServerStream(maximumHeaderListSize: headers.listSize - 1)
    #expect { try stream.receive(headers: headers, endStream: false) } throws: {
      ($0 as? GRPCRejection)?.status.code == .resourceExhausted
    }
    #expect(stream.isFinished)
  }

  @Test("A missing 'te: trailers' and a malformed timeout are INVALID_ARGUMENT")
  func malformedHeaders() {
    #expect(rejection(request([("te", nil)]))?.status.code == .invalidArgument)
    #expect(rejection(request([("te", "gzip")]))?.status.code == .invalidArgument)
    #expect(rejection(request([("te", "gzip, trailers")])) == nil)
    #expect(rejection(request([("grpc-timeout", "soon")]))?.status.code == .invalidArgument)
    #expect(rejection(request([(":path", "")]))?.status.code == .unimplemented)
  }

  @Test("Messages are delivered in order, followed by exactly one half-close")
  func eventsInOrder() throws {
    var stream = GRPCServerStream()
    _ = try stream.receive(headers: request(), endStream: false)
    #expect(try stream.next() == nil)
    var bytes = ByteBuffer()
    bytes.writeGRPCMessage(bytes: [1])
    bytes.writeGRPCMessage(bytes: [])
    stream.receive(data: bytes, endStream: true)
    #expect(try stream.next() == .message(ByteBuffer(bytes: [1])))
    #expect(try stream.next() == .message(ByteBuffer()))
    #expect(try stream.next() == .halfClose)
    #expect(try stream.next() == nil)
  }

  @Test("A request that ends within a message is INTERNAL")
  func truncatedRequest() throws {
    var stream = GRPCServerStream()
    _ = try stream.receive(headers: request(), endStream: false)
    stream.receive(data: ByteBuffer(bytes: [0, 0, 0, 0, 9, 1]), endStream: true)
    let status = #expect(throws: GRPCStatus.self) { try stream.next() }
    #expect(status?.code == .internal)
  }

  @Test(
    "A response without messages is one header block; a response with messages has trailers; a second end is ignored"
  )
  func responses() throws {
    var early = GRPCServerStream()
    _ = try early.receive(headers: request(), endStream: false)
    let only = early.finish(GRPCStatus(.notFound, "Nö"))
    #expect(only?.first(name: ":status") == "200")
    #expect(only?.first(name: "content-type") == "application/grpc")
    #expect(only?.first(name: "grpc-status") == "5")
    #expect(only?.first(name: "grpc-message") == "N%C3%B6")
    #expect(early.finish(.ok) == nil)
    #expect(early.start() == nil)

    var complete = GRPCServerStream()
    _ = try complete.receive(headers: request(), endStream: true)
    #expect(complete.start() != nil)
    #expect(complete.start() == nil)
    #expect(complete.finish(.ok) == ["grpc-status": "0"])
    #expect(complete.finish(.ok) == nil)
  }

  @Test("Nothing is delivered after the response has ended")
  func nothingAfterTheEnd() throws {
    var stream = GRPCServerStream()
    _ = try stream.receive(headers: request(), endStream: false)
    _ = stream.finish(GRPCStatus(.internal))
    var bytes = ByteBuffer()
    bytes.writeGRPCMessage(bytes: [1])
    stream.receive(data: bytes, endStream: false)
    stream.receive(data: ByteBuffer(bytes: [0, 0]), endStream: true)
    #expect(try stream.next() == nil)
    #expect(stream.bufferedBytes == 0)
  }
}
