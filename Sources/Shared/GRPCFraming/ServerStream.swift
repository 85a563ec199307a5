// The server's half of one call as a value: bytes and header blocks in, messages out; and which header blocks
// frame an answer. It does no I/O; the caller moves the bytes.
//
// States of the request: awaitingHead -> open -> halfClosed. States of the answer: idle -> started -> finished.
// An answer that finishes before it started is one header block (trailers-only).

public import NIOCore
public import NIOHPACK

/// The server side of one gRPC stream.
public struct GRPCServerStream: Sendable {
  /// What the client sent, in order.
  public enum Event: Sendable, Equatable {
    /// A whole request message.
    case message(ByteBuffer)
    /// A whole request message, compressed as the request's head says.
    case compressedMessage(ByteBuffer)
    /// A message of so many bytes, as its prefix says, which is more than the limit. It is the last event: the rest of the
    /// request is dropped as it comes.
    case oversizedMessage(Int)
    /// The client will send nothing more.
    case halfClose
  }

  private enum Request { case awaitingHead, open, halfClosed, delivered }
  private enum Answer { case idle, started, finished }

  private var request = Request.awaitingHead
  private var answer = Answer.idle
  private var parser: GRPCMessageParser
  private let maximumHeaderListSize: Int
  private let encodings: GRPCEncodings

  /// Makes the state of a fresh stream.
  /// - Parameters:
  ///   - maximumMessageSize: of a message as it comes; whoever unpacks it keeps the limit of what it holds.
  ///   - maximumHeaderListSize: of a request's headers, as HTTP/2 counts them.
  ///   - encodings: how messages may be compressed.
  public init(
    maximumMessageSize: Int = GRPCMessageParser.defaultMaximumMessageSize,
    maximumHeaderListSize: Int = .max, encodings: GRPCEncodings = .identity
  ) {
    parser = GRPCMessageParser(maximumMessageSize: maximumMessageSize)
    self.maximumHeaderListSize = maximumHeaderListSize
    self.encodings = encodings
  }

  /// Whether the answer's final headers have been produced; whatever arrives later is of no interest.
  public var isFinished: Bool { answer == .finished }

  /// Bytes that arrived and are not yet delivered as messages.
  public var bufferedBytes: Int { parser.bufferedBytes }

  /// Takes the request's headers.
  /// - Throws: the answer to give when they are not a valid gRPC request; the stream is then finished.
  public mutating func receive(
    headers: HPACKHeaders, endStream: Bool
  ) throws(GRPCRejection) -> GRPCRequestHead {
    do throws(GRPCRejection) {
      guard headers.listSize <= maximumHeaderListSize else { throw .tooManyHeaders(maximumHeaderListSize) }
      let head = try GRPCRequestHead.parse(headers, accepting: encodings)
      if head.encoding != nil { parser.acceptsPacked = true }
      request = endStream ? .halfClosed : .open
      return head
    } catch {
      request = .delivered
      answer = .finished
      throw error
    }
  }

  /// Takes bytes of the request's body. What arrives after the answer has ended is dropped.
  public mutating func receive(data: ByteBuffer, endStream: Bool) {
    guard request == .open, answer != .finished else { return }
    parser.append(data)
    if endStream { request = .halfClosed }
  }

  /// Takes the end of the request when it arrives in a header block (trailers) of its own.
  public mutating func receiveEnd() {
    if request == .open { request = .halfClosed }
  }

  /// Drops what has come of the request and was not delivered, and whatever is still to come.
  public mutating func discardRequest() {
    request = .delivered
    parser = GRPCMessageParser()
  }

  /// The next thing the client sent; nil if more bytes are needed or everything was delivered.
  /// - Throws: a framing error, with which the call must be finished.
  public mutating func next() throws(GRPCStatus) -> Event? {
    guard answer != .finished, request == .open || request == .halfClosed else { return nil }
    switch try parser.nextFrame() {
    case .message(let message): return .message(message)
    case .packed(let message): return .compressedMessage(message)
    case .oversized(let length):
      discardRequest()
      return .oversizedMessage(length)
    case nil: break
    }
    guard request == .halfClosed else { return nil }
    request = .delivered
    guard !parser.hasPartialMessage else {
      throw GRPCStatus(.internal, "The request ended within a message.")
    }
    return .halfClose
  }

  /// The header block that starts the answer, to be sent before the first message; nil if it was sent already or
  /// the call is finished.
  public mutating func start() -> HPACKHeaders? {
    guard answer == .idle else { return nil }
    answer = .started
    return encodings.responseHeaders
  }

  /// The header block that ends the answer and the stream; nil if that was produced before.
  public mutating func finish(_ status: GRPCStatus) -> HPACKHeaders? {
    switch answer {
    case .idle:
      answer = .finished
      return Self.trailersOnly(status)
    case .started:
      answer = .finished
      return Self.trailers(status)
    case .finished:
      return nil
    }
  }

  static let responseHeaders: HPACKHeaders = [
    ":status": "200", "content-type": "application/grpc",
  ]
  private static let okTrailers: HPACKHeaders = ["grpc-status": "0"]

  /// The trailers of a call that has sent its response headers: always less than the 8 KiB of headers that clients take,
  /// and than one frame. A block that needs several is not sent, and ends the connection.
  static func trailers(_ status: GRPCStatus) -> HPACKHeaders {
    if status.code == .ok { return okTrailers }
    var status = status
    status.message = GRPCStatus.shortened(status.message)
    var trailers = HPACKHeaders([("grpc-status", String(status.code.rawValue))])
    if !status.message.isEmpty {
      trailers.add(name: "grpc-message", value: GRPCStatus.percentEncoded(status.message))
    }
    if let details = status.detailsHeader { trailers.add(name: "grpc-status-details-bin", value: details) }
    return trailers
  }

  /// The single header block of a call that ends before any message.
  static func trailersOnly(_ status: GRPCStatus) -> HPACKHeaders {
    var headers = responseHeaders
    headers.add(contentsOf: trailers(status))
    return headers
  }
}

extension HPACKHeaders {
  /// The bytes of a header list as HTTP/2 counts them (RFC 9113, 6.5.2).
  public var listSize: Int {
    var size = 0
    for (name, value, _) in self { size += name.utf8.count + value.utf8.count + 32 }
    return size
  }
}
