// The trust roots of TLS connections: the system's certificate authorities, or those in a file that the environment
// names. The latter is for servers with self-signed certificates.

import Foundation

/// The certificate authorities that connections over TLS trust.
package enum TrustRoots {
  /// Names a PEM file of the authorities to trust instead of the system's, as with OpenSSL's tools.
  package static let variable = "SSL_CERT_FILE"

  /// The path of the file that the environment names; nil for the system's authorities.
  package static var file: String? {
    ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
  }
}
