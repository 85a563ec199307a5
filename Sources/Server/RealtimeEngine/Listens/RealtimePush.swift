// What the server tells a listener. One push object serves every listener that is told the same, and keeps the bytes it
// was encoded to, so that a change is encoded once however many are listening.

import Locking
import OrderedStore
public import RealtimeModel

/// One message to listeners: a location's value was replaced, children were merged, or a listen ended.
public final class RealtimePush: Sendable {
  /// What is told.
  public enum Body: Sendable {
    /// The value at the path is now this.
    case set(Node)
    /// The values at these paths, relative to the push's path, are now these; all at once.
    case merge([(path: Path, value: Node)])
    /// Within each interval the value at the path is now exactly this.
    case rangeMerge([RangeMerge])
    /// The listen at the path with the push's tag has ended, for this reason.
    case cancel(RealtimeError)
  }

  /// The location.
  public let path: Path
  /// What is told.
  public let body: Body
  /// The tag of the query this belongs to; nil for default listens.
  public let tag: Int64?
  /// Whether this is what a listen starts with: it has to reach its listener before the listen is answered, as it is.
  public let isFirst: Bool
  /// The highest locations that lost their last child with what the push removes, as far as the listens know them. They
  /// may have been leaves, which removing below them does not remove for who has not heard of the child. In ascending order,
  /// none inside another, and around nothing but what the push removes.
  public let emptied: [Path]
  /// The highest locations with priorities above what the push removes; ordered in the same way.
  public let prioritized: [Path]
  /// About how many bytes of JSON the push is, with all the locations that it names.
  public let estimatedSize: Int

  private let frames = Guarded<[(type: ObjectIdentifier, variant: Int, frame: any Sendable)]>([])

  /// Makes a push.
  public init(
    _ path: Path, _ body: Body, tag: Int64? = nil, isFirst: Bool = false, emptied: [Path] = [],
    prioritized: [Path] = []
  ) {
    self.isFirst = isFirst
    self.emptied = emptied
    self.prioritized = prioritized
    self.path = path
    self.body = body
    self.tag = tag
    func size(_ path: Path?) -> Int { path.map { $0.keyBytes + 8 } ?? 0 }
    var bytes =
      switch body {
      case .set(let node): node.estimatedSize
      case .merge(let children): children.reduce(0) { $0 + $1.value.estimatedSize + size($1.path) }
      case .rangeMerge(let merges):
        merges.reduce(0) { $0 + $1.updates.estimatedSize + size($1.start) + size($1.end) }
      case .cancel: 0
      }
    bytes += size(path)
    for place in emptied { bytes += size(place) }
    for place in prioritized { bytes += size(place) }
    estimatedSize = bytes
  }

  /// The push as one endpoint encodes it: `make` is called once for each type and variant, and its result kept.
  ///
  /// Two threads that ask at the same moment may both encode; one result is kept.
  public func encoded<Frame: Sendable>(
    as type: Frame.Type, variant: Int = 0, _ make: (RealtimePush) -> Frame
  ) -> Frame {
    let id = ObjectIdentifier(type)
    let known = frames.withLock { frames in frames.first { $0.type == id && $0.variant == variant }?.frame }
    if let known = known as? Frame { return known }
    let made = make(self)
    frames.withLock { $0.append((id, variant, made)) }
    return made
  }
}

extension [Path] {
  /// Where the one of these locations stands that is another, or has it below it: they are in ascending order, and none lies
  /// inside another.
  public func position(around path: Path) -> Int? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if path < self[middle] { high = middle } else { low = middle + 1 }
    }
    return low > 0 && self[low - 1].contains(path) ? low - 1 : nil
  }
}
