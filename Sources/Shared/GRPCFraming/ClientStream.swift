// The client side of a gRPC stream, as a value without I/O. It builds the request headers, and parses the server's
// header blocks and data.
//
// Invariant: every call ends with exactly one status, whatever the server or a proxy sends: trailers, trailers-only, a
// plain HTTP response, a reset, a lost connection, or malformed framing.

public import NIOCore
public import NIOHPACK

/// The client side of one gRPC stream.
public struct GRPCClientStream: Sendable {
  /// An event of the response, in order.
  public enum Event: Sendable, Equatable {
    /// The first header block of the response. It occurs at most once, and never for a trailers-only response.
    case metadata(HPACKHeaders)
    /// A response message.
    case message(ByteBuffer)
    /// The end of the call, with its trailers. It is the last event.
    case end(GRPCStatus, HPACKHeaders)
  }

  private enum Phase { case awaitingHead, streaming, ended }

  private var phase = Phase.awaitingHead
  private var parser: GRPCMessageParser
  private var trailers: HPACKHeaders?
  private var metadata: HPACKHeaders?

  /// Creates a stream.
  ///
  /// - Parameter maximumMessageSize: the maximum bytes of a message.
  public init(maximumMessageSize: Int = GRPCMessageParser.defaultMaximumMessageSize) {
    parser = GRPCMessageParser(maximumMessageSize: maximumMessageSize)
  }

  /// Whether ``Event/end(_:_:)`` was delivered.
  public var isEnded: Bool { phase == .ended }

  /// The header block that opens a call.
  ///
  /// - Parameters:
  ///   - path: the method, such as `/google.firestore.v1.Firestore/Listen`.
  ///   - scheme: `http` or `https`.
  ///   - metadata: additional headers with lower-case names.
  public static func requestHeaders(
    path: String, authority: String, scheme: String, timeout: GRPCTimeout? = nil,
    metadata: [(String, String)] = []
  ) -> HPACKHeaders {
    var headers = HPACKHeaders()
    headers.reserveCapacity(8 + metadata.count)
    headers.add(name: ":method", value: "POST")
    headers.add(name: ":scheme", value: scheme)
    headers.add(name: ":path", value: path)
    headers.add(name: ":authority", value: authority)
    headers.add(name: "te", value: "trailers")
    headers.add(name: "content-type", value: "application/grpc")
    headers.add(name: "grpc-accept-encoding", value: "identity")
    if let timeout { headers.add(name: "grpc-timeout", value: timeout.headerValue) }
    for (name, value) in metadata { headers.add(name: name, value: value) }
    return headers
  }

  /// Receives a header block.
  public mutating func receive(headers: HPACKHeaders, endStream: Bool) {
    guard phase != .ended, trailers == nil else { return }
    if phase == .awaitingHead {
      let status = headers.first(name: ":status").flatMap { Int($0) } ?? 0
      if (100..<200).contains(status), !endStream { return }
      phase = .streaming
      let isGRPC = status == 200 && GRPCRequestHead.isGRPC(headers)
      if endStream || !isGRPC {
        trailers =
          isGRPC || headers.contains(name: "grpc-status")
          ? headers : Self.trailersForPlainHTTP(status, headers)
        return
      }
      if let encoding = headers.first(name: "grpc-encoding"), encoding != "identity" {
        trailers = Self.syntheticTrailers(
          GRPCStatus(.internal, "The server answered with the encoding '\(encoding)', which was not offered.")
        )
        return
      }
      metadata = headers
    } else {
      trailers = headers
    }
  }

  /// Receives data of the response body.
  public mutating func receive(data: ByteBuffer, endStream: Bool) {
    guard phase != .ended, trailers == nil else { return }
    guard phase == .streaming else {
      trailers = Self.syntheticTrailers(GRPCStatus(.internal, "The server sent data before its headers."))
      return
    }
    parser.append(data)
    if endStream {
      trailers = Self.syntheticTrailers(
        GRPCStatus(.internal, "The server ended the stream without a status."))
    }
  }

  /// Receives a RST_STREAM frame.
  public mutating func receiveReset(http2Code: UInt32) {
    guard phase != .ended, trailers == nil else { return }
    trailers = Self.syntheticTrailers(
      GRPCStatus(.init(resetWithHTTP2Code: http2Code), "The stream was reset with HTTP/2 code \(http2Code)."))
  }

  /// Records that the connection was lost or could not be made.
  public mutating func receiveConnectionLoss(_ reason: String) {
    guard phase != .ended, trailers == nil else { return }
    trailers = Self.syntheticTrailers(GRPCStatus(.unavailable, reason))
  }

  /// The next event; nil if more input is needed. Messages that arrived before the end are delivered before
  /// it. A framing error ends the call.
  public mutating func next() -> Event? {
    guard phase != .ended else { return nil }
    if let head = metadata {
      metadata = nil
      return .metadata(head)
    }
    do {
      if let message = try parser.next() { return .message(message) }
    } catch {
      phase = .ended
      return .end(error, [:])
    }
    guard let trailers else { return nil }
    phase = .ended
    var status = Self.status(of: trailers)
    if parser.hasPartialMessage, status.code == .ok {
      status = GRPCStatus(.internal, "The answer ended within a message.")
    }
    return .end(status, trailers)
  }

  private static func status(of trailers: HPACKHeaders) -> GRPCStatus {
    guard let value = trailers.first(name: "grpc-status"), let code = UInt32(value) else {
      return GRPCStatus(.unknown, "The server's trailers carry no valid grpc-status.")
    }
    return GRPCStatus(
      .init(rawValue: code), GRPCStatus.percentDecoded(trailers.first(name: "grpc-message") ?? ""))
  }

  private static func trailersForPlainHTTP(_ status: Int, _ headers: HPACKHeaders) -> HPACKHeaders {
    let type = headers.first(name: "content-type") ?? "no content type"
    return syntheticTrailers(
      GRPCStatus(
        .init(plainHTTPStatus: status), "The server answered HTTP \(status) with \(type), not gRPC."))
  }

  private static func syntheticTrailers(_ status: GRPCStatus) -> HPACKHeaders {
    GRPCServerStream.trailers(status)
  }
}
