// The configuration of the SMTP server that relays the server's e-mails.

/// An SMTP relay.
package struct SMTPRelay: Sendable, Equatable {
  /// How the connection is encrypted.
  package enum Encryption: String, Sendable, CaseIterable {
    /// TLS from the first byte, usually on port 465.
    case implicit
    /// TLS after the command STARTTLS, usually on port 587. A relay without the command receives nothing.
    case startTLS = "starttls"
    /// No encryption, for a relay on the same machine or in a private network.
    case none
  }

  /// The account at the relay.
  package struct Credentials: Sendable, Equatable {
    package var user: String
    package var password: String

    /// Creates credentials.
    package init(user: String, password: String) {
      self.user = user
      self.password = password
    }
  }

  /// The port of message submission (RFC 6409).
  package static let submissionPort = 587
  /// The port of message submission with implicit TLS (RFC 8314).
  package static let submissionsPort = 465

  package var host: String
  package var port: Int
  package var encryption: Encryption
  /// The account at the relay; nil if it needs none.
  package let credentials: Credentials?
  /// A file with the certificates (PEM) of the authorities that may sign the relay's certificate; nil for the
  /// authorities of the system.
  package var authorities: String?

  /// Creates a configuration; nil for credentials without encryption, which would expose the password to the network.
  package init?(
    host: String, port: Int, encryption: Encryption, credentials: Credentials? = nil,
    authorities: String? = nil
  ) {
    guard credentials == nil || encryption != .none else { return nil }
    self.host = host
    self.port = port
    self.encryption = encryption
    self.credentials = credentials
    self.authorities = authorities
  }
}
