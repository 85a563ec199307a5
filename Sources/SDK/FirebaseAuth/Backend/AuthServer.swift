// The auth server: the URLs of the authentication services.
//
// This SDK uses the v1 and v2 paths of the Identity Toolkit API, as Google's web and Android SDKs do.
// Google's iOS SDK uses the v3 paths. Google documents only v1 and v2, and every server that supports v3
// supports them too.
//
// On servers other than Google's, the first path segment is the production host name. This applies to the
// emulator and to a production Hearth server.

import Foundation

/// The server of one `Auth`.
struct AuthServer: Equatable, Sendable {
  /// A service and its version.
  enum Service: String, Sendable {
    case identity = "identitytoolkit.googleapis.com/v1"
    case identityV2 = "identitytoolkit.googleapis.com/v2"
    case token = "securetoken.googleapis.com/v1"
  }

  /// The base URL without a final slash; nil for Google's hosts.
  let base: String?
  /// Whether the server is an emulator, which accepts any API key.
  let isEmulator: Bool

  /// Google's servers.
  static let google = AuthServer(base: nil, isEmulator: false)

  /// An emulator at a host, which may be an IPv6 address, and a port.
  static func emulator(host: String, port: Int) -> AuthServer {
    let host = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    return AuthServer(base: "http://\(host):\(port)", isEmulator: true)
  }

  /// A server at a base URL.
  static func server(at url: URL) -> AuthServer {
    var base = url.absoluteString
    while base.hasSuffix("/") { base.removeLast() }
    return AuthServer(base: base, isEmulator: false)
  }

  /// The URL of an operation such as `accounts:signUp`; nil if the address or the key cannot be part of a URL.
  func url(_ service: Service, _ operation: String, apiKey: String) -> URL? {
    let root = base.map { "\($0)/\(service.rawValue)" } ?? "https://\(service.rawValue)"
    guard var components = URLComponents(string: "\(root)/\(operation)") else { return nil }
    components.queryItems = [URLQueryItem(name: "key", value: apiKey)]
    return components.url
  }
}
