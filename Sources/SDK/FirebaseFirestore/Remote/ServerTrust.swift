// The trust settings of encrypted connections.

import FirebaseCore
import NIOSSL

enum ServerTrust {
  /// The TLS context of a connection, with the system's authorities or those of the file that the environment names.
  /// Reads files.
  static func context() throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = ["h2"]
    if let file = TrustRoots.file { configuration.trustRoots = .file(file) }
    return try NIOSSLContext(configuration: configuration)
  }
}
