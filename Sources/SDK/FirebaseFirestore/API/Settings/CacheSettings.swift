// The cache settings. This version keeps the cache in memory. It accepts the settings of a cache on disk, so that
// programs compile and run, and warns that nothing is kept between runs.

public import Foundation

/// How the local cache is kept.
public protocol LocalCacheSettings {}

/// How a cache in memory gets rid of documents.
public protocol MemoryGarbageCollectorSettings {}

/// A size that means no limit.
public let FirestoreCacheSizeUnlimited: Int64 = -1

/// A size of a cache in bytes. Stops the program below the least one.
func checkedCacheSize(_ bytes: Int64) -> Int64 {
  if bytes != FirestoreCacheSizeUnlimited && bytes < 1 << 20 {
    refuse("Cache size must be set to at least 1048576 bytes")
  }
  return bytes
}

let defaultCacheSize: Int64 = 100 << 20

/// A cache on disk, which this version does not have: the cache is kept in memory, within the size.
///
/// - Warning: Cached documents, and writes that the server has not acknowledged, are lost when the
///   program ends. The first instance of a process with these settings, which are the
///   default, logs the warning `I-FST000006` when it starts. ``MemoryCacheSettings`` with
///   ``MemoryLRUGCSettings`` say the same without a warning.
public final class PersistentCacheSettings: NSObject, NSCopying, LocalCacheSettings, Sendable {
  static let warning =
    "This version of the SDK keeps its cache in memory only: cached documents, and writes that the server has"
    + " not acknowledged, are lost when the program ends. Set FirestoreSettings.cacheSettings to"
    + " MemoryCacheSettings to say that this is meant."

  let size: Int64

  /// A cache of 100 MiB.
  public override init() { size = defaultCacheSize }

  /// A cache of a size in bytes, at least 1 MiB, or `FirestoreCacheSizeUnlimited`.
  public init(sizeBytes size: NSNumber) { self.size = checkedCacheSize(size.int64Value) }

  /// The settings themselves, which never change.
  public func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the sizes are equal.
  public override func isEqual(_ object: Any?) -> Bool { (object as? PersistentCacheSettings)?.size == size }
  /// Hashes the size.
  public override var hash: Int { size.hashValue }
}

/// Documents go as soon as nothing refers to them.
public final class MemoryEagerGCSetting: NSObject, NSCopying, MemoryGarbageCollectorSettings, Sendable {
  /// Makes the setting.
  public override init() {}

  /// The setting itself, which never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the other is of the same kind.
  public override func isEqual(_ object: Any?) -> Bool { object is MemoryEagerGCSetting }
  /// One number for all.
  public override var hash: Int { 1 }
}

/// Documents stay until the cache is full; then the least recently used go.
public final class MemoryLRUGCSettings: NSObject, NSCopying, MemoryGarbageCollectorSettings, Sendable {
  let size: Int64

  /// A cache of 100 MiB.
  public override init() { size = defaultCacheSize }

  /// A cache of a size in bytes, at least 1 MiB, or `FirestoreCacheSizeUnlimited`.
  public init(sizeBytes size: NSNumber) { self.size = checkedCacheSize(size.int64Value) }

  /// The settings themselves, which never change.
  public func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the sizes are equal.
  public override func isEqual(_ object: Any?) -> Bool { (object as? MemoryLRUGCSettings)?.size == size }
  /// Hashes the size.
  public override var hash: Int { size.hashValue }
}

/// A cache in memory.
public final class MemoryCacheSettings: NSObject, NSCopying, LocalCacheSettings, Sendable {
  static let sizeWarning =
    "FirestoreSettings.cacheSizeBytes has no effect where isPersistenceEnabled is false: documents go as soon as"
    + " nothing refers to them. To keep a cache in memory up to a size, set cacheSettings to"
    + " MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes:))."

  /// The size to keep to, nil where documents go at once.
  let size: Int64?

  /// A cache whose documents go as soon as nothing refers to them.
  public override init() { size = nil }

  /// A cache with a way to get rid of documents: ``MemoryEagerGCSetting`` or ``MemoryLRUGCSettings``.
  /// Stops the program for others.
  public init(garbageCollectorSettings settings: any MemoryGarbageCollectorSettings & NSObjectProtocol) {
    switch settings {
    case is MemoryEagerGCSetting: size = nil
    case let settings as MemoryLRUGCSettings: size = settings.size
    default:
      refuse(
        "garbageCollectorSettings takes MemoryEagerGCSetting or MemoryLRUGCSettings, not \(type(of: settings))"
      )
    }
  }

  /// The settings themselves, which never change.
  public func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether the ways are the same.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? MemoryCacheSettings).map { $0.size == size } ?? false
  }
  /// Hashes the way.
  public override var hash: Int { size.hashValue }
}
