// Where a node keeps its hash once it has been computed. Nodes are immutable and shared between threads, so the cell is
// the one thing in them that changes: from unknown to known, once.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// A hash that is computed once.
///
/// `@unchecked Sendable`: `value` is read and written only under `mutex`.
final class HashCell: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: String?

  /// Below this size in bytes of JSON a hash is computed each time: it costs less than the room to keep it.
  static let leastSize = 512

  static func make(forSize size: Int) -> HashCell? { size < leastSize ? nil : HashCell() }

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
  var isKnown: Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return value != nil
  }

  /// The hash, computed by `compute` if it is not known yet. Two threads may both compute it; they get the same.
  func value(_ compute: () -> String) -> String {
    pthread_mutex_lock(mutex)
    let known = value
    pthread_mutex_unlock(mutex)
    if let known { return known }
    let computed = compute()
    pthread_mutex_lock(mutex)
    value = computed
    pthread_mutex_unlock(mutex)
    return computed
  }
}
