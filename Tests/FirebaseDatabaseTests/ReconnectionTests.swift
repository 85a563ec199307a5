// Tests reconnections before the end of the back-off, when the app comes to the foreground or the network
// changes.

import FirebaseCore
import Foundation
import ServerFixture
import Testing

@testable import FirebaseDatabase

@Suite("Reconnection", .timeLimit(.minutes(2)))
struct ReconnectionTests {
  /// Makes a client whose next attempt to connect is at least nine seconds away, although the server is
  /// reachable.
  private static func waitingClient(_ relay: Relay) async throws -> (Client, Recorder<String>) {
    let client = try Client(port: relay.port, namespace: "demo-reconnection")
    let connected = client.database.reference(withPath: ".info/connected").recordValues()
    _ = try await connected.first(within: 60, "the first connection") { $0 == "true" }
    await withCheckedContinuation { continuation in
      client.ref.repository.enqueue { repository in
        for _ in 0..<40 { _ = repository.connection.backoff.next() }
        continuation.resume()
      }
    }
    relay.cut(refusing: true)
    _ = try await connected.first(within: 60, "the loss of the connection") { $0 == "false" }
    relay.accept()
    return (client, connected)
  }

  @Test("a client that waits connects at once when the app comes to the foreground")
  func foreground() async throws {
    let server = try await TestServer.start()
    let relay = try await Relay.start(to: server.port)
    let (client, connected) = try await ReconnectionTests.waitingClient(relay)
    NotificationCenter.default.post(name: ReconnectionTriggers.foreground, object: nil)
    _ = try await connected.first(within: 8, "a connection") { $0 == "true" }
    await client.close()
    await relay.stop()
    await server.stop([])
  }

  #if canImport(Glibc)
    @Test("a client that waits connects at once when the kernel announces an address or a route")
    func announcements() async throws {
      let server = try await TestServer.start()
      let relay = try await Relay.start(to: server.port)
      let (client, connected) = try await ReconnectionTests.waitingClient(relay)
      let isSent = await withCheckedContinuation { continuation in
        client.ref.repository.enqueue { repository in
          continuation.resume(
            returning: repository.triggers?.announcements?.simulate(NetworkAnnouncements.newRoute) ?? false)
        }
      }
      if isSent {
        _ = try await connected.first(within: 8, "a connection") { $0 == "true" }
      } else {
        print("skipped: only root may send messages of the kernel's protocol")
      }
      await client.close()
      await relay.stop()
      await server.stop([])
    }

    @Test("only kernel messages about new addresses and routes cause a reconnection; invalid messages do not")
    func messages() {
      func message(_ type: UInt16, length: UInt32 = 16, size: Int = 16) -> [UInt8] {
        var bytes = withUnsafeBytes(of: length) { Array($0) } + withUnsafeBytes(of: type) { Array($0) }
        bytes += [UInt8](repeating: 0, count: size - 6)
        return bytes
      }
      let other = message(16, length: 18, size: 20)
      #expect(NetworkAnnouncements.announcesNetwork(message(20)[...]))
      #expect(NetworkAnnouncements.announcesNetwork((other + message(24))[...]))
      for bytes in [
        [], [20], other, message(21), message(16, length: 0) + message(20), message(16, length: .max),
      ] {
        #expect(!NetworkAnnouncements.announcesNetwork(bytes[...]))
      }
    }
  #endif
}

#if canImport(Glibc)
  import Glibc

  extension NetworkAnnouncements {
    /// Sends a message to this socket. The kernel allows this only to root.
    ///
    /// - Returns: whether the kernel accepted the message.
    fileprivate func simulate(_ type: UInt16) -> Bool {
      let sender = socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      guard sender >= 0 else { return false }
      defer { close(sender) }
      var receiver = Address()
      var size = socklen_t(MemoryLayout<Address>.size)
      let hasAddress = withUnsafeMutableBytes(of: &receiver) {
        getsockname(descriptor, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size) == 0
      }
      guard hasAddress else { return false }
      receiver.groups = 0
      let message: [UInt32] = [16, UInt32(type), 0, 0]
      return message.withUnsafeBytes { bytes in
        receiver.call { sendto(sender, bytes.baseAddress, bytes.count, 0, $0, $1) } == bytes.count
      }
    }
  }
#endif
