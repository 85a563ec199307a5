// Caches the hash of a node. Nodes are immutable and shared between threads; the cell is the only mutable part of a
// node and changes once, from unknown to known.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// A cached hash.
// SAFETY: `value` is read and written only under `mutex`.
final class HashCell: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: String?

  /// The minimum size, in JSON bytes, of nodes that cache their hash. Hashing a smaller node again costs less than the
  /// memory of a cell.
  static let minimumSize = 512

  static func make(forSize size: Int) -> HashCell? { size < minimumSize ? nil : HashCell() }

  private init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deinitialize(count: 1)
    mutex.deallocate()
  }

  /// Whether the hash has been computed.
  var isComputed: Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return value != nil
  }

  /// The hash, computed by `compute` if it is not known yet. Two threads may both compute it, with the same result.
  func value(_ compute: () -> String) -> String {
    pthread_mutex_lock(mutex)
    let cached = value
    pthread_mutex_unlock(mutex)
    if let cached { return cached }
    let computed = compute()
    pthread_mutex_lock(mutex)
    value = computed
    pthread_mutex_unlock(mutex)
    return computed
  }
}
