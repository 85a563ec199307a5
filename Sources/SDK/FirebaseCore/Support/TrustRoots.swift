// The trust roots of TLS connections: the system's certificate authorities, or those in a file that the
// environment names. The file is for servers with self-signed certificates.

import Foundation

/// The certificate authorities that TLS connections trust.
package enum TrustRoots {
  /// The environment variable with the path of a PEM file. The authorities in it replace those of the system,
  /// as with OpenSSL's tools.
  package static let variable = "SSL_CERT_FILE"

  /// The path of the file that the environment names; nil for the system's authorities.
  package static var file: String? {
    ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
  }
}
