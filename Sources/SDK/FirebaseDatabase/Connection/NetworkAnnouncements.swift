// Receives announcements of the Linux kernel about the network (rtnetlink). After a new address or a new
// route a server may be reachable again.

#if canImport(Glibc)
  import Dispatch
  import Glibc

  /// Receives announcements until the object is released.
  final class NetworkAnnouncements {
    // From linux/rtnetlink.h, which Swift does not import: groups of announcements, and types of messages.
    private static let groups: UInt32 = 0x10 | 0x40 | 0x100 | 0x400  // addresses and routes of IPv4 and IPv6
    static let newAddress: UInt16 = 20
    static let newRoute: UInt16 = 24

    let descriptor: Int32
    private let source: any DispatchSourceRead

    /// Opens a socket for the kernel's announcements; nil if the system denies it.
    ///
    /// - Parameter changed: called on any thread after a new address or route was announced.
    init?(_ changed: @escaping @Sendable () -> Void) {
      let datagrams = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      let descriptor = socket(AF_NETLINK, datagrams, 0)
      guard descriptor >= 0 else { return nil }
      guard Address(groups: NetworkAnnouncements.groups).call({ bind(descriptor, $0, $1) }) == 0 else {
        close(descriptor)
        return nil
      }
      self.descriptor = descriptor
      source = DispatchSource.makeReadSource(
        fileDescriptor: descriptor, queue: DispatchQueue(label: "com.google.firebase.database.network"))
      source.setEventHandler { if NetworkAnnouncements.receive(descriptor) { changed() } }
      source.setCancelHandler { close(descriptor) }
      source.resume()
    }

    deinit {
      source.cancel()
    }

    /// Reads every message in the socket's buffer.
    ///
    /// - Returns: whether a message announces a new address or route, or messages were lost.
    private static func receive(_ descriptor: Int32) -> Bool {
      var isNew = false
      var buffer = [UInt8](repeating: 0, count: 32_768)
      while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return isNew || (count < 0 && errno == ENOBUFS) }
        isNew = announcesNetwork(buffer[..<count]) || isNew
      }
    }

    /// Whether a datagram contains a message about a new address or route. Each message begins with its
    /// length (4 bytes) and its type (2 bytes) in the machine's byte order. It is padded to a multiple of 4
    /// bytes.
    static func announcesNetwork(_ datagram: ArraySlice<UInt8>) -> Bool {
      var rest = datagram
      while rest.count >= 16 {
        let (length, type) = rest.withUnsafeBytes {
          (Int($0.loadUnaligned(as: UInt32.self)), $0.loadUnaligned(fromByteOffset: 4, as: UInt16.self))
        }
        if type == newAddress || type == newRoute { return true }
        guard length >= 16, length <= rest.count else { return false }
        rest = rest.dropFirst((length + 3) & ~3)
      }
      return false
    }

    /// The C structure `sockaddr_nl`.
    struct Address {
      var family = UInt16(AF_NETLINK)
      var padding: UInt16 = 0
      /// The address of the receiving socket; 0 lets the kernel choose it.
      var port: UInt32 = 0
      var groups: UInt32 = 0

      /// Runs a system call with this address.
      func call<Result>(_ work: (UnsafePointer<sockaddr>?, socklen_t) -> Result) -> Result {
        withUnsafeBytes(of: self) {
          work($0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
      }
    }
  }
#endif
