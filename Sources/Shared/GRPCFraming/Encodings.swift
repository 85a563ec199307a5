// Lists the encodings that a server accepts for messages, by name. This module does not decompress messages itself,
// because apps also build it, and would then depend on a compression library.

import NIOHPACK

/// The message compressions that a server accepts.
public final class GRPCEncodings: Sendable {
  /// No compression.
  public static let identity = GRPCEncodings([])

  static let acceptEncodingHeader = "grpc-accept-encoding"

  let names: [String]
  /// The value of the header `grpc-accept-encoding`.
  let acceptEncoding: String
  /// The header block that starts a response.
  let responseHeaders: HPACKHeaders

  /// Creates a list of the accepted encodings, the preferred first. Uncompressed messages are always accepted.
  public init(_ names: [String]) {
    self.names = names
    acceptEncoding = (names + ["identity"]).joined(separator: ",")
    var headers = GRPCServerStream.responseHeaders
    headers.add(name: Self.acceptEncodingHeader, value: acceptEncoding)
    responseHeaders = headers
  }
}
