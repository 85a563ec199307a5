// The server side of a gRPC stream, as a value without I/O. It parses header blocks and data into messages, and builds
// the header blocks of the response.
//
// States of the request: awaitingHead -> open -> halfClosed -> delivered. States of the response: idle -> started ->
// finished. A response that finishes before it starts is a single header block (trailers-only).
//
// Invariant: every call gets exactly one final header block.
//
// Decision: docs/decisions/0002-own-grpc-framing.md

public import NIOCore
public import NIOHPACK

/// The server side of one gRPC stream.
public struct GRPCServerStream: Sendable {
  /// An event of the request, in order.
  public enum Event: Sendable, Equatable {
    /// A request message.
    case message(ByteBuffer)
    /// A request message, compressed with the encoding in the request's head.
    case compressedMessage(ByteBuffer)
    /// A message over the limit, with the number of bytes that its prefix announces. It is the last event; later bytes
    /// of the request are discarded.
    case oversizedMessage(Int)
    /// The end of the request.
    case halfClose
  }

  private enum RequestState { case awaitingHead, open, halfClosed, delivered }
  private enum ResponseState { case idle, started, finished }

  private var request = RequestState.awaitingHead
  private var response = ResponseState.idle
  private var parser: GRPCMessageParser
  private let maximumHeaderListSize: Int
  private let encodings: GRPCEncodings

  /// Creates a stream.
  ///
  /// - Parameters:
  ///   - maximumMessageSize: the maximum bytes of a message on the wire. The caller limits its decompressed size.
  ///   - maximumHeaderListSize: the maximum size of a request's headers, as HTTP/2 counts them.
  ///   - encodings: the accepted compressions.
  public init(
    maximumMessageSize: Int = GRPCMessageParser.defaultMaximumMessageSize,
    maximumHeaderListSize: Int = .max, encodings: GRPCEncodings = .identity
  ) {
    parser = GRPCMessageParser(maximumMessageSize: maximumMessageSize)
    self.maximumHeaderListSize = maximumHeaderListSize
    self.encodings = encodings
  }

  /// Whether ``finish(_:)`` was called. Later input is discarded.
  public var isFinished: Bool { response == .finished }

  /// The bytes received and not yet delivered as messages.
  public var bufferedBytes: Int { parser.bufferedBytes }

  /// Receives the request's headers.
  ///
  /// - Throws: the response to headers that are not a valid gRPC request. The stream is then finished.
  public mutating func receive(
    headers: HPACKHeaders, endStream: Bool
  ) throws(GRPCRejection) -> GRPCRequestHead {
    do throws(GRPCRejection) {
      guard headers.listSize <= maximumHeaderListSize else { throw .tooManyHeaders(maximumHeaderListSize) }
      let head = try GRPCRequestHead.parse(headers, accepting: encodings)
      if head.encoding != nil { parser.acceptsCompressed = true }
      request = endStream ? .halfClosed : .open
      return head
    } catch {
      request = .delivered
      response = .finished
      throw error
    }
  }

  /// Receives data of the request body. Data after the end of the response is discarded.
  public mutating func receive(data: ByteBuffer, endStream: Bool) {
    guard request == .open, response != .finished else { return }
    parser.append(data)
    if endStream { request = .halfClosed }
  }

  /// Receives the end of the request, if it arrives as a separate header block (trailers).
  public mutating func receiveEnd() {
    if request == .open { request = .halfClosed }
  }

  /// Discards the undelivered part of the request and all further input.
  public mutating func discardRequest() {
    request = .delivered
    parser = GRPCMessageParser()
  }

  /// The next event; nil if more input is needed or everything was delivered.
  ///
  /// - Throws: a framing error. The caller must finish the call with it.
  public mutating func next() throws(GRPCStatus) -> Event? {
    guard response != .finished, request == .open || request == .halfClosed else { return nil }
    switch try parser.nextFrame() {
    case .message(let message): return .message(message)
    case .compressed(let message): return .compressedMessage(message)
    case .oversized(let length):
      discardRequest()
      return .oversizedMessage(length)
    case nil: break
    }
    guard request == .halfClosed else { return nil }
    // From here on `next()` returns nil, so that the half-close is delivered once.
    request = .delivered
    guard !parser.hasPartialMessage else {
      throw GRPCStatus(.internal, "The request ended within a message.")
    }
    return .halfClose
  }

  /// The header block that starts the response, before the first message; nil if the response has started or finished.
  public mutating func start() -> HPACKHeaders? {
    guard response == .idle else { return nil }
    response = .started
    return encodings.responseHeaders
  }

  /// The header block that ends the response and the stream; nil if the response has finished.
  public mutating func finish(_ status: GRPCStatus) -> HPACKHeaders? {
    switch response {
    case .idle:
      response = .finished
      return Self.trailersOnly(status)
    case .started:
      response = .finished
      return Self.trailers(status)
    case .finished:
      return nil
    }
  }

  static let responseHeaders: HPACKHeaders = [
    ":status": "200", "content-type": "application/grpc",
  ]
  private static let okTrailers: HPACKHeaders = ["grpc-status": "0"]

  /// The trailers of a call that has sent its response headers. They are smaller than 8 KiB, the header limit of
  /// clients. They also fit into one HTTP/2 frame, because a header block of several frames would end the connection.
  static func trailers(_ status: GRPCStatus) -> HPACKHeaders {
    if status.code == .ok { return okTrailers }
    var status = status
    status.message = GRPCStatus.truncated(status.message)
    var trailers = HPACKHeaders([("grpc-status", String(status.code.rawValue))])
    if !status.message.isEmpty {
      trailers.add(name: "grpc-message", value: GRPCStatus.percentEncoded(status.message))
    }
    if let details = status.detailsHeader { trailers.add(name: "grpc-status-details-bin", value: details) }
    precondition(trailers.listSize < 8 << 10, "invariant: trailers are smaller than 8 KiB")
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
