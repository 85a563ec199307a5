// Measures writes over a link with a round trip of 300 ms: a relay delays each direction by half of it.

import Dispatch
import FirebaseFirestore
import Foundation

struct SlowLink {
  static let roundTrip = 0.3

  let count: Int
  let server: String

  func run() async throws {
    let relay = try DelayingRelay(to: server, delay: SlowLink.roundTrip / 2)
    let client = try MeasuredClient.make(
      "slow", server: "127.0.0.1:\(relay.port)", cache: MemoryCacheSettings())
    try await client.document("slow/first").setData([:])
    let time = try await seconds {
      for number in 0..<count { put(client.document("slow/d\(number)"), ["n": number]) }
      try await client.waitForPendingWrites()
    }
    try await client.terminate()
    FirestoreClientBenchmarks.row(
      "\(count) queued writes over a round trip of 300 ms",
      "\(short(time)) s, \(short(Double(count) / (time / SlowLink.roundTrip))) writes a round trip")
  }
}

/// Forwards TCP connections to a server, each byte after a delay.
final class DelayingRelay: Sendable {
  #if canImport(Darwin)
    private static let stream = SOCK_STREAM
    private static let noSignal: Int32 = 0
  #else
    private static let stream = Int32(SOCK_STREAM.rawValue)
    private static let noSignal = Int32(MSG_NOSIGNAL)
  #endif

  let port: Int

  /// Listens on a free port of the loopback interface.
  ///
  /// - Parameters:
  ///   - server: the address as HOST:PORT; the host is an IPv4 address.
  ///   - delay: the delay of each direction in seconds.
  init(to server: String, delay: Double) throws {
    let parts = server.split(separator: ":")
    guard parts.count == 2, let target = UInt16(parts[1]) else {
      throw MeasurementFailure(text: "\(server) is no address")
    }
    let listener = socket(AF_INET, DelayingRelay.stream, 0)
    var address = DelayingRelay.address("127.0.0.1", 0)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) == 0 }
    }
    var bound = size
    let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &bound) == 0 }
    }
    guard isBound, isNamed, listen(listener, 16) == 0 else { throw MeasurementFailure(text: "no relay") }
    port = Int(UInt16(bigEndian: address.sin_port))
    let host = String(parts[0])
    Thread.detachNewThread {
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        let upstream = socket(AF_INET, DelayingRelay.stream, 0)
        var address = DelayingRelay.address(host, target)
        let isConnected = withUnsafePointer(to: &address) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(upstream, $0, size) == 0 }
        }
        guard isConnected else {
          close(client)
          continue
        }
        DelayingRelay.forward(from: client, to: upstream, delay)
        DelayingRelay.forward(from: upstream, to: client, delay)
      }
    }
  }

  private static func address(_ host: String, _ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr(host)
    return address
  }

  /// Copies one direction until its end. A serial queue keeps the order of the delayed pieces.
  private static func forward(from source: Int32, to target: Int32, _ delay: Double) {
    let queue = DispatchQueue(label: "relay")
    Thread.detachNewThread {
      var piece = [UInt8](repeating: 0, count: 64 << 10)
      while true {
        let count = recv(source, &piece, piece.count, 0)
        let bytes = count > 0 ? Array(piece[..<count]) : []
        queue.asyncAfter(deadline: .now() + delay) {
          if bytes.isEmpty {
            shutdown(target, Int32(SHUT_WR))
            return
          }
          var sent = 0
          while sent < bytes.count {
            let more = bytes[sent...].withUnsafeBytes {
              send(target, $0.baseAddress, $0.count, DelayingRelay.noSignal)
            }
            guard more > 0 else { return }
            sent += more
          }
        }
        if count <= 0 { return }
      }
    }
  }
}
