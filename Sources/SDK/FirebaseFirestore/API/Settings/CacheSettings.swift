// The cache settings: a cache on disk, which is the default, or in memory.

public import Foundation

/// The settings of the local cache: ``PersistentCacheSettings`` or ``MemoryCacheSettings``.
public protocol LocalCacheSettings {}

/// The garbage collection of a cache in memory.
public protocol MemoryGarbageCollectorSettings {}

/// The size of a cache without a limit.
public let FirestoreCacheSizeUnlimited: Int64 = -1

/// Checks the size of a cache in bytes. Stops the program for a size below the minimum.
func checkedCacheSize(_ bytes: Int64) -> Int64 {
  if bytes != FirestoreCacheSizeUnlimited && bytes < 1 << 20 {
    failInvalidArgument("Cache size must be set to at least 1048576 bytes")
  }
  return bytes
}

let defaultCacheSize: Int64 = 100 << 20

/// A cache on disk, which is the default. Documents and writes survive the end of the program.
///
/// Documents stay until the cache exceeds its size. Then the least recently used documents are removed,
/// except those of listeners and of queued writes.
///
/// On Linux the files are stored in `$XDG_DATA_HOME/firestore` or `~/.local/share/firestore`. Each app and
/// database has a separate folder, which only its owner can read.
///
/// One process at a time can use a cache. If another process uses it, or if the file cannot be opened, the
/// SDK keeps the cache in memory. A damaged file is moved to `damaged.sqlite`, and an empty cache replaces
/// it. After a failed sync the SDK copies the cache to a new file. It logs each of these failures and passes
/// it to ``Firestore/persistenceErrorHandler``.
open class PersistentCacheSettings: NSObject, NSCopying, LocalCacheSettings, @unchecked Sendable {
  // SAFETY: constants only.
  let size: Int64

  /// A cache of 100 MiB.
  public override init() { size = defaultCacheSize }

  /// A cache of a size in bytes, at least 1 MiB, or `FirestoreCacheSizeUnlimited`.
  public init(sizeBytes size: NSNumber) { self.size = checkedCacheSize(size.int64Value) }

  /// Returns the settings themselves, because they never change.
  open func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the sizes are equal.
  open override func isEqual(_ object: Any?) -> Bool { (object as? PersistentCacheSettings)?.size == size }
  /// Hashes the size.
  open override var hash: Int { size.hashValue }
}

/// A cache in memory removes documents as soon as nothing uses them.
open class MemoryEagerGCSetting: NSObject, NSCopying, MemoryGarbageCollectorSettings, @unchecked Sendable {
  // SAFETY: constants only.
  /// Makes the setting.
  public override init() {}

  /// Returns the setting itself, because it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the other setting has the same type.
  open override func isEqual(_ object: Any?) -> Bool { object is MemoryEagerGCSetting }
  /// All instances are equal.
  open override var hash: Int { 1 }
}

/// A cache in memory keeps documents until it exceeds its size. Then it removes the least recently used
/// documents.
open class MemoryLRUGCSettings: NSObject, NSCopying, MemoryGarbageCollectorSettings, @unchecked Sendable {
  // SAFETY: constants only.
  let size: Int64

  /// A cache of 100 MiB.
  public override init() { size = defaultCacheSize }

  /// A cache of a size in bytes, at least 1 MiB, or `FirestoreCacheSizeUnlimited`.
  public init(sizeBytes size: NSNumber) { self.size = checkedCacheSize(size.int64Value) }

  /// Returns the settings themselves, because they never change.
  open func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the sizes are equal.
  open override func isEqual(_ object: Any?) -> Bool { (object as? MemoryLRUGCSettings)?.size == size }
  /// Hashes the size.
  open override var hash: Int { size.hashValue }
}

/// A cache in memory.
open class MemoryCacheSettings: NSObject, NSCopying, LocalCacheSettings, @unchecked Sendable {
  // SAFETY: constants only.
  /// The maximum size in bytes; nil if documents are removed as soon as nothing uses them.
  let size: Int64?

  /// A cache with ``MemoryLRUGCSettings`` of 100 MiB.
  public override init() { size = defaultCacheSize }

  /// A cache with one type of garbage collection: ``MemoryEagerGCSetting`` or ``MemoryLRUGCSettings``. Stops
  /// the program for other types.
  public init(garbageCollectorSettings settings: any MemoryGarbageCollectorSettings & NSObjectProtocol) {
    switch settings {
    case is MemoryEagerGCSetting: size = nil
    case let settings as MemoryLRUGCSettings: size = settings.size
    default:
      failInvalidArgument(
        "garbageCollectorSettings must be MemoryEagerGCSetting or MemoryLRUGCSettings, not \(type(of: settings))"
      )
    }
  }

  /// Returns the settings themselves, because they never change.
  open func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the garbage collection is the same.
  open override func isEqual(_ object: Any?) -> Bool {
    (object as? MemoryCacheSettings).map { $0.size == size } ?? false
  }
  /// Hashes the type of garbage collection.
  open override var hash: Int { size.hashValue }
}
