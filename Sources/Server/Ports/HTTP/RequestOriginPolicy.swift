// Decides by a request's Host, Origin and Fetch Metadata headers whether a port serves it.
//
// An emulator trusts every caller, so a web page that its developer happens to visit could read and write its data. A
// browser names the page in `Origin` (RFC 6454) or, for requests without CORS, marks a request of another site with
// `Sec-Fetch-Site` (W3C Fetch Metadata). DNS rebinding makes a page's own name resolve to this machine; the `Host` header
// (RFC 9110, section 7.2) still shows that name. An address in `Host` is always served, because rebinding needs a name.
//
// gRPC is not checked: browsers send HTTP/2 only over TLS, and the certificate must then match the host name.
//
// Invariant: a page of another machine reaches an emulator only if its origin was configured.

package import NIOHTTP1

/// The hosts and the pages whose requests a port serves.
package struct RequestOriginPolicy: Sendable {
  private enum Rule {
    case everything
    case named(hosts: Set<String>, origins: Set<String>, isRemote: Bool)
  }

  private var rule: Rule
  /// Whether the port serves pages of every origin. It still checks the `Host` header.
  private var servesEveryPage = false

  private init(rule: Rule) { self.rule = rule }

  /// The same policy for a port that itself decides, for each request, whether a page may send it.
  package var servingEveryPage: RequestOriginPolicy {
    var policy = self
    policy.servesEveryPage = true
    return policy
  }

  /// Serves every request. For a server that verifies credentials, which pages of other sites do not have.
  package static let any = RequestOriginPolicy(rule: .everything)

  /// Serves requests with a loopback name or from a loopback page, and the configured hosts and origins.
  ///
  /// - Parameters:
  ///   - hosts: additional names that are served in `Host`, without ports.
  ///   - origins: additional origins whose pages are served, such as `https://editor.example`, or `null` for pages from
  ///     files.
  ///   - isRemote: whether the port may be reached from other machines. If so, names without a dot in `Host` are
  ///     served, such as the name of this machine or of a container. So are pages whose host equals the request's `Host`.
  package static func emulator(hosts: [String], origins: [String], isRemote: Bool) -> RequestOriginPolicy {
    let origins = Set(origins.map { $0.lowercased() })
    // A page that a proxy serves usually reaches the emulator by the proxy's name too.
    let hosts = Set(hosts.map { $0.lowercased() } + origins.compactMap { WebOrigin($0)?.host })
    return RequestOriginPolicy(rule: .named(hosts: hosts, origins: origins, isRemote: isRemote))
  }

  /// Returns the reason why a request is not served, with the option that allows it; nil if the request is served.
  package func refusal(of head: HTTPRequestHead) -> String? {
    guard case .named(let hosts, let origins, let isRemote) = rule else { return nil }
    let host = head.headers.first(name: "host").map { WebOrigin.hostName($0) }
    if let host, !Self.isServed(host, hosts, isRemote: isRemote) {
      return
        "This emulator does not serve the host name '\(host.prefix(100))'. Use an address or localhost, or start the "
        + "server with --allow-host \(host.prefix(100))."
    }
    if servesEveryPage { return nil }
    let origin: String
    if let named = head.headers.first(name: "origin") {
      origin = named
    } else if head.headers.first(name: "sec-fetch-site") == "cross-site",
      head.headers.first(name: "sec-fetch-mode") != "navigate" || head.method != .GET
    {
      // Scripts and images of a page are requested without an Origin.
      origin = head.headers.first(name: "referer").flatMap { WebOrigin(referrer: $0) }?.text ?? "null"
    } else {
      return nil
    }
    if origins.contains(origin.lowercased()) { return nil }
    if let page = WebOrigin(origin) {
      if page.isLoopback { return nil }
      if isRemote, page.host == host { return nil }
    }
    return
      "This emulator does not serve pages of the origin '\(origin.prefix(200))'. Start the server with --allow-origin "
      + "\(origin.prefix(200)) to allow them."
  }

  /// Whether a request comes from a page that is not on this machine, even if its origin is configured.
  package static func isForeignPage(_ headers: HTTPHeaders) -> Bool {
    guard let origin = headers.first(name: "origin") else { return false }
    return WebOrigin(origin)?.isLoopback != true
  }

  /// Whether a text can be the value of an `Origin` header.
  package static func isOrigin(_ text: String) -> Bool {
    text == "null" || (WebOrigin(text) != nil && !text.contains("*"))
  }

  private static func isServed(_ host: String, _ hosts: Set<String>, isRemote: Bool) -> Bool {
    WebOrigin.isAddress(host) || WebOrigin.isLoopbackName(host) || hosts.contains(host)
      || (isRemote && !host.contains("."))
  }
}
