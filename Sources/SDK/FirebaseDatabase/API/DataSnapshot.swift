// A data snapshot: the value of a location, as the app receives it. Invariant: a snapshot never changes.

public import Foundation
import RealtimeModel

/// The value of a location at one moment.
///
/// Immutable, and safe to pass between threads.
open class DataSnapshot: NSObject, @unchecked Sendable {
  // Safe to share: all stored properties are constants.
  let node: Node
  let path: Path
  let ordering: Ordering
  let repository: Repository?

  init(node: Node, path: Path, ordering: Ordering, repository: Repository?) {
    self.node = node
    self.path = path
    self.ordering = ordering
    self.repository = repository
    super.init()
  }

  /// Makes a snapshot without a value, for subclasses.
  public override init() {
    node = .empty
    path = .root
    ordering = .priority
    repository = nil
    super.init()
  }

  /// The snapshot of a descendant location, which may have no value.
  ///
  /// - Parameter childPathString: keys joined by slashes.
  @discardableResult
  open func childSnapshot(forPath childPathString: String) -> DataSnapshot {
    let relative = checked(childPathString, method: "childSnapshotForPath:")
    return DataSnapshot(
      node: node.descendant(relative), path: path.appending(relative), ordering: .priority,
      repository: repository)
  }

  /// Whether a descendant location has a value.
  @discardableResult
  open func hasChild(_ childPathString: String) -> Bool {
    !node.descendant(checked(childPathString, method: "hasChild:")).isEmpty
  }

  private func checked(_ text: String, method: String) -> Path {
    PathRules.reference(text, below: Path(keys: [ChildKey("-")]), method: method).droppingFirst
  }

  /// Whether the value is an object.
  @discardableResult
  open func hasChildren() -> Bool { node.childCount > 0 }

  /// Whether there is a value.
  @discardableResult
  open func exists() -> Bool { !node.isEmpty }

  /// The value with priorities: `.priority` next to children, and `.value` for a leaf that has one.
  @discardableResult
  open func valueInExportFormat() -> Any? { ValueWriter.exported(node) }

  /// The value: `NSNull`, `NSNumber`, `String`, a dictionary, or an array where the keys are indexes.
  open var value: Any? { ValueWriter.value(node) }

  /// The number of children.
  open var childrenCount: UInt { UInt(node.childCount) }

  /// The location.
  open var ref: DatabaseReference { DatabaseReference(repository: repository, path: path) }

  /// The last key of the location; empty for the root.
  open var key: String { path.last?.text ?? "" }

  /// The children as snapshots, in the order of the query.
  open var children: NSEnumerator {
    ChildEnumerator(
      node.sortedChildren(by: ordering).map { key, child in
        DataSnapshot(node: child, path: path.child(key), ordering: .priority, repository: repository)
      })
  }

  /// The priority: nil, a number or a string.
  open var priority: Any? { node.priority.map { ValueWriter.value($0.leafValue) } }

  /// `Snap (key) value`.
  open override var description: String { "Snap (\(key)) \(ValueWriter.value(node))" }
}

/// Iterates over the children once.
final class ChildEnumerator: NSEnumerator {
  private var rest: ArraySlice<Any>

  init(_ children: [Any]) {
    rest = children[...]
    super.init()
  }

  override func nextObject() -> Any? {
    rest.popFirst()
  }
}
