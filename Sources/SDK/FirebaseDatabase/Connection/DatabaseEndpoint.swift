// The endpoint of a database: host, port, transport security and namespace. It is parsed from a URL.
//
// Invariant: two URLs of the same database give equal endpoints. `Database` uses the endpoint as the key of
// its instances.

import Foundation

/// A server and the name of a database on it.
struct DatabaseEndpoint: Hashable, Sendable {
  /// The host in lower case.
  var host: String
  /// The port; nil for the default port of the transport.
  var port: Int?
  var isSecure: Bool
  /// The database's name.
  var namespace: String

  /// The port to connect to.
  var effectivePort: Int { port ?? (isSecure ? 443 : 80) }

  /// The host, with its port if that is not the default port of the transport.
  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port.map { "\(name):\($0)" } ?? name
  }

  /// Whether the host is known to serve only one database, so that each database has a different host.
  var hasHostPerDatabase: Bool {
    host.hasSuffix(".firebaseio.com") || host.hasSuffix(".firebasedatabase.app")
  }

  /// The URL of the root.
  var url: String { "\(isSecure ? "https" : "http")://\(authority)" }

  /// Parses a URL.
  ///
  /// - Returns: the endpoint and the keys of the path; nil if the string is not the URL of a database.
  static func parse(_ text: String) -> (endpoint: DatabaseEndpoint, path: [String])? {
    var rest = Substring(text)
    var scheme = "http"
    var hasScheme = false
    if let range = rest.range(of: "://") {
      scheme = rest[..<range.lowerBound].lowercased()
      rest = rest[range.upperBound...]
      hasScheme = true
    }
    guard ["http", "https", "ws", "wss"].contains(scheme) else { return nil }
    var query = Substring()
    if let mark = rest.firstIndex(of: "?") {
      query = rest[rest.index(after: mark)...]
      rest = rest[..<mark]
    }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let pathText = rest[slash...]
    guard let (host, port) = hostAndPort(rest[..<slash]) else { return nil }
    let isSecure = scheme == "https" || scheme == "wss" || (port == nil && !(hasScheme && isLocal(host)))
    guard let namespace = namespace(of: host, query: query) else { return nil }
    let keys = pathText.split(separator: "/").map { segment in
      let spaced = segment.replacingOccurrences(of: "+", with: " ")
      return spaced.removingPercentEncoding ?? spaced
    }
    let endpoint = DatabaseEndpoint(host: host, port: port, isSecure: isSecure, namespace: namespace)
    return (endpoint, keys)
  }

  private static func hostAndPort(_ text: Substring) -> (String, Int?)? {
    var host = text
    var port: Int?
    let closing = text.lastIndex(of: "]") ?? text.startIndex
    if let colon = text[closing...].lastIndex(of: ":") {
      guard let number = Int(text[text.index(after: colon)...]), (1...65_535).contains(number) else {
        return nil
      }
      port = number
      host = text[..<colon]
    }
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || "#@".contains($0) }) else { return nil }
    return (host.lowercased(), port)
  }

  private static func isLocal(_ host: String) -> Bool {
    ["localhost", "127.0.0.1", "::1"].contains(host)
  }

  private static func namespace(of host: String, query: Substring) -> String? {
    for pair in query.split(separator: "&") where pair.hasPrefix("ns=") {
      let name = String(pair.dropFirst(3))
      return name.removingPercentEncoding ?? name
    }
    return host.split(separator: ".").first.map(String.init)
  }
}
