// The address of the server, parsed from the settings.

/// The host and port of the server, and whether the connection uses TLS.
struct ServerAddress: Hashable, Sendable {
  let host: String
  let port: Int
  let isEncrypted: Bool

  /// Parses `host` or `host:port`. An IPv6 address must be in brackets. Returns nil if the host is empty or
  /// the port is invalid.
  init?(_ text: String, isEncrypted: Bool) {
    self.isEncrypted = isEncrypted
    let defaultPort = isEncrypted ? 443 : 80
    if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
      host = String(text[text.index(after: text.startIndex)..<end])
      let rest = text[text.index(after: end)...]
      guard !host.isEmpty, rest.isEmpty || rest.first == ":" else { return nil }
      guard let port = rest.isEmpty ? defaultPort : Int(rest.dropFirst()), (1...65535).contains(port) else {
        return nil
      }
      self.port = port
      return
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count == 2 {
      guard let port = Int(parts[1]), (1...65535).contains(port) else { return nil }
      host = String(parts[0])
      self.port = port
    } else {
      host = text
      port = defaultPort
    }
  }

  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isEncrypted ? 443 : 80) ? name : "\(name):\(port)"
  }
}
