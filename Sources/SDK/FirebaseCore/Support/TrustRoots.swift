// Whom a client trusts to vouch for a server: the system's authorities, or those in a file that the
// environment names, which is how a server of one's own with a certificate of one's own is reached.

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
