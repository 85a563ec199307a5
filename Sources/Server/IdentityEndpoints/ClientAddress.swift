// Identifies the client of a request by its network address, for limits.
//
// A provider assigns at least a /64 of IPv6 to each customer, so the first 64 bits identify a client. IPv4 addresses in
// IPv6 form count as IPv4. A peer with a loopback or private address may be a proxy. For such a peer, the last address
// of `X-Forwarded-For` identifies the client, because the proxy added it. Peers with public addresses cannot choose
// their address by that header.

package import NIOCore

/// The network address of a client: an IPv4 address, or the first 64 bits of an IPv6 address.
package struct ClientAddress: Hashable, Sendable {
  /// Four or eight bytes.
  private let bytes: [UInt8]

  /// Returns nil if the peer has no IP address, as over a Unix domain socket.
  /// - Parameters:
  ///   - peer: the address of the connection's other end.
  ///   - forwardedFor: the values of the request's `X-Forwarded-For` headers.
  package init?(peer: SocketAddress?, forwardedFor: [String]) {
    guard let address = peer.flatMap(Self.bytes(of:)) else { return nil }
    guard Self.isLocal(address), let forwarded = Self.lastAddress(in: forwardedFor) else {
      bytes = Self.network(of: address)
      return
    }
    bytes = Self.network(of: forwarded)
  }

  private static func lastAddress(in headers: [String]) -> [UInt8]? {
    guard let last = headers.last?.split(separator: ",").last else { return nil }
    let text = last.filter { $0 != " " && $0 != "\t" && $0 != "[" && $0 != "]" }
    return (try? SocketAddress(ipAddress: text, port: 0)).flatMap(bytes(of:))
  }

  /// Four or sixteen bytes; nil for an address of another family.
  private static func bytes(of address: SocketAddress) -> [UInt8]? {
    // The offsets of `sin_addr` and `sin6_addr` are the same on all systems.
    switch address {
    case .v4(let address): return withUnsafeBytes(of: address.address) { Array($0.dropFirst(4).prefix(4)) }
    case .v6(let address):
      let bytes = withUnsafeBytes(of: address.address) { Array($0.dropFirst(8).prefix(16)) }
      let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
      return bytes.starts(with: mapped) ? Array(bytes.dropFirst(12)) : bytes
    case .unixDomainSocket: return nil
    }
  }

  private static func network(of address: [UInt8]) -> [UInt8] {
    address.count == 4 ? address : Array(address.prefix(8))
  }

  /// Whether an address is a loopback, link-local or private one (RFC 1122, 1918, 3927, 4193, 4291).
  private static func isLocal(_ address: [UInt8]) -> Bool {
    guard address.count >= 4 else { return false }
    if address.count == 4 {
      return switch (address[0], address[1]) {
      case (127, _), (10, _), (192, 168), (169, 254), (172, 16...31): true
      default: false
      }
    }
    if address[0] & 0xFE == 0xFC || (address[0] == 0xFE && address[1] & 0xC0 == 0x80) { return true }
    return address.dropLast().allSatisfy { $0 == 0 } && address.last == 1
  }
}
