// Selects the server of an `Auth`: Google's servers by default, an emulator, or a production Hearth server.

import FirebaseCore
public import Foundation
import Locking

extension Auth {
  /// Sends all requests to an emulator. The app calls it before any other use of this instance.
  ///
  /// Stops the program if the host is empty.
  ///
  /// - Parameters:
  ///   - host: a host name or an IP address.
  ///   - port: the port; the emulator's default is 9099.
  public func useEmulator(withHost host: String, port: Int) {
    guard !host.isEmpty else {
      usageException("FIRInvalidHost", "Cannot connect to an emulator with an empty host")
    }
    state.withLock { $0.backend.server = .emulator(host: host, port: port) }
  }

  /// Sends all requests to a Hearth server. The app calls it before any other use of this instance.
  ///
  /// Google's SDK can use other servers only as emulators over HTTP. This method is an extension of Hearth:
  ///
  /// ```swift
  /// Auth.auth().useServer(at: URL(string: "https://auth.example.org")!)
  /// ```
  ///
  /// Stops the program if the URL is not an absolute HTTP or HTTPS URL with a host.
  ///
  /// - Parameter url: the base URL of the server's authentication port. The system must trust the server's
  ///   certificate. `SSL_CERT_FILE`, with which the databases trust further authorities, has no effect on
  ///   URLSession on Linux.
  public func useServer(at url: URL) {
    guard let scheme = url.scheme?.lowercased(), scheme == "https" || scheme == "http",
      let host = url.host, !host.isEmpty, url.query == nil, url.fragment == nil
    else {
      usageException(
        "FIRInvalidServerURL", "The authentication server's URL '\(url)' is not an HTTP URL with a host")
    }
    state.withLock { $0.backend.server = .server(at: url) }
  }
}
