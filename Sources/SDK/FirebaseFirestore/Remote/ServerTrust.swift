// The trusted authorities of TLS connections to the server.

import FirebaseCore
import NIOSSL

enum ServerTrust {
  /// Makes the TLS context of a connection. It trusts the system's authorities, or those in the file that the
  /// environment names. It reads files.
  static func context() throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = ["h2"]
    if let file = TrustRoots.file { configuration.trustRoots = .file(file) }
    return try NIOSSLContext(configuration: configuration)
  }
}
