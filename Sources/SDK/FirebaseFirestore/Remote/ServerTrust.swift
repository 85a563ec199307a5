// Which servers an encrypted connection trusts.

import Foundation
import NIOSSL

enum ServerTrust {
  /// Names a PEM file of the authorities to trust instead of the system's, as with OpenSSL's tools.
  static let variable = "SSL_CERT_FILE"

  /// What an encrypted connection needs: the system's authorities, or those of the file that the
  /// environment names. Reads files.
  static func context() throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = ["h2"]
    if let file = ProcessInfo.processInfo.environment[variable], !file.isEmpty {
      configuration.trustRoots = .file(file)
    }
    return try NIOSSLContext(configuration: configuration)
  }
}
