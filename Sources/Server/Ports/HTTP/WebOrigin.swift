// Parses the serialized origin of a web page (RFC 6454, section 6.2) and classifies host names.

import NIOCore

/// The scheme, host and port of a web page.
struct WebOrigin: Equatable {
  /// The origin as a browser writes it, such as `http://localhost:3000`, in lowercase.
  let text: String
  /// The host in lowercase, without port and brackets.
  let host: String

  /// Parses an origin.
  /// - Returns: nil for `null` and for text that does not name an origin.
  init?(_ text: String) {
    let text = text.lowercased()
    guard let colon = text.range(of: "://"), colon.lowerBound > text.startIndex else { return nil }
    let authority = text[colon.upperBound...]
    guard !authority.isEmpty, !authority.contains(where: { "/?#@ ".contains($0) }) else { return nil }
    self.text = text
    host = Self.hostName(String(authority))
  }

  /// Returns the origin of a `Referer` header's URL.
  init?(referrer: String) {
    guard let colon = referrer.range(of: "://") else { return nil }
    let end = referrer[colon.upperBound...].firstIndex { "/?#".contains($0) } ?? referrer.endIndex
    self.init(String(referrer[..<end]))
  }

  /// Whether the page was loaded from this machine. Includes `capacitor://localhost` and other schemes of app shells.
  var isLoopback: Bool { Self.isLoopbackName(host) || Self.isLoopbackAddress(host) }

  /// Returns the host of a `Host` header or an authority in lowercase, without port and brackets.
  static func hostName(_ authority: String) -> String {
    let authority = authority.lowercased()
    if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
      return String(authority[authority.index(after: authority.startIndex)..<end])
    }
    let name = authority.prefix { $0 != ":" }
    // A trailing dot marks a fully qualified name.
    return String(name.hasSuffix(".") ? name.dropLast() : name)
  }

  /// Whether a name is reserved for loopback (RFC 6761, section 6.3).
  static func isLoopbackName(_ host: String) -> Bool { host == "localhost" || host.hasSuffix(".localhost") }

  /// Whether the host is an IPv4 or IPv6 address.
  static func isAddress(_ host: String) -> Bool { (try? SocketAddress(ipAddress: host, port: 0)) != nil }

  private static func isLoopbackAddress(_ host: String) -> Bool {
    isAddress(host) && (host == "::1" || (host.hasPrefix("127.") && !host.contains(":")))
  }
}

extension String {
  /// The first range of `part`; nil if it does not occur.
  fileprivate func range(of part: String) -> Range<Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(part) { return start..<index(start, offsetBy: part.count) }
      start = index(after: start)
    }
    return nil
  }
}
