// Derives from the configuration which hosts and web pages an emulator serves.

import Ports

extension HearthConfiguration {
  /// The hosts and pages that the ports serve. A server without `--emulator` serves all, since it verifies credentials.
  var servedOrigins: RequestOriginPolicy {
    guard emulator else { return .any }
    let hosts = [firestore.host, database?.host, auth?.host, hub?.host].compactMap(\.self)
    return .emulator(hosts: hosts + allowedHosts, origins: allowedOrigins, isRemote: allowRemoteEmulator)
  }

  /// Checks `--allow-host` and `--allow-origin`.
  /// - Throws: ``HearthError`` for a value that no request could match.
  func validateOrigins() throws(HearthError) {
    guard emulator || (allowedHosts.isEmpty && allowedOrigins.isEmpty) else {
      throw HearthError(
        "--allow-host and --allow-origin need --emulator: other servers serve every host and origin, and verify "
          + "credentials.")
    }
    for host in allowedHosts where host.isEmpty || host.contains(where: { "/:*@ ".contains($0) }) {
      throw HearthError("--allow-host '\(host)' is not a host name: give it without scheme and port.")
    }
    for origin in allowedOrigins where !RequestOriginPolicy.isOrigin(origin) {
      throw HearthError(
        "--allow-origin '\(origin)' is not an origin: give scheme, host and port as a browser sends them, such as "
          + "https://editor.example:8443, or null for pages from files.")
    }
  }
}
