// The encodings of messages that an end accepts, by name. Unpacking is the business of whoever gets the messages, so that
// this module, which apps build too, needs no library for it.

import NIOHPACK

/// The compressions that the server side of calls accepts.
public final class GRPCEncodings: Sendable {
  /// None.
  public static let identity = GRPCEncodings([])

  static let header = "grpc-accept-encoding"

  let names: [String]
  /// As the header tells the peer.
  let announcement: String
  /// What starts an answer.
  let responseHeaders: HPACKHeaders

  /// Names what is accepted beside messages that are not compressed, the preferred first.
  public init(_ names: [String]) {
    self.names = names
    announcement = (names + ["identity"]).joined(separator: ",")
    var headers = GRPCServerStream.responseHeaders
    headers.add(name: Self.header, value: announcement)
    responseHeaders = headers
  }
}
