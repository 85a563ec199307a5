// Represents one message from the server to listeners.
//
// All listeners that receive the same change share one push object, which keeps its encoded bytes. A change
// is therefore encoded once for any number of listeners.

import Locking
import OrderedStore
package import RealtimeModel

/// One message to listeners: a location's value was replaced, children were merged, or a listen was
/// cancelled.
package final class RealtimePush: Sendable {
  /// The change.
  package enum Body: Sendable {
    /// The value at the path is replaced.
    case set(Node)
    /// The values at these paths, relative to the push's path, are replaced in one step.
    case merge([(path: Path, value: Node)])
    /// Intervals of the value at the path are replaced (see `RangeMerge`).
    case rangeMerge([RangeMerge])
    /// The listen at the path with the push's tag was cancelled, for this reason.
    case cancel(RealtimeError)
  }

  /// The location.
  package let path: Path
  /// The change.
  package let body: Body
  /// The tag of the query; nil for listens without a filter.
  package let tag: Int64?
  /// Whether this is the first data of a listen. The endpoint has to send it, unchanged, before the response
  /// to the listen.
  package let isFirst: Bool
  /// The estimated size in bytes of JSON, with all paths.
  package let estimatedSize: Int

  private let encodings = Guarded<[(type: ObjectIdentifier, variant: Int, frame: any Sendable)]>([])

  /// Creates a push.
  package init(_ path: Path, _ body: Body, tag: Int64? = nil, isFirst: Bool = false) {
    self.isFirst = isFirst
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
    estimatedSize = bytes
  }

  /// The push in an endpoint's encoding. The result of `make` is cached for each type and variant.
  ///
  /// If two threads encode concurrently, both call `make`, and later calls return the same one of the two
  /// results.
  package func encoded<Frame: Sendable>(
    as type: Frame.Type, variant: Int = 0, _ make: (RealtimePush) -> Frame
  ) -> Frame {
    let id = ObjectIdentifier(type)
    let known = encodings.withLock { encodings in
      encodings.first { $0.type == id && $0.variant == variant }?.frame
    }
    if let known = known as? Frame { return known }
    let made = make(self)
    encodings.withLock { $0.append((id, variant, made)) }
    return made
  }
}
