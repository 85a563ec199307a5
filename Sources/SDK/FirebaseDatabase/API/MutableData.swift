// The mutable data of a transaction.
//
// Invariant: all objects that were made from one value share one tree, so a change through a child is visible
// through its parent.

import FirebaseCore
public import Foundation
import RealtimeModel

/// A value that a transaction's block reads and changes.
///
/// Valid only inside the block; not safe to pass to other threads.
open class MutableData: NSObject {
  final class Tree {
    var node: Node
    init(_ node: Node) { self.node = node }
  }

  private let tree: Tree
  private let path: Path
  private let rootKey: String?

  init(node: Node, key: String?) {
    tree = Tree(node)
    path = .root
    rootKey = key
    super.init()
  }

  private init(tree: Tree, path: Path, rootKey: String?) {
    self.tree = tree
    self.path = path
    self.rootKey = rootKey
    super.init()
  }

  /// Makes data without a value.
  public override init() {
    tree = Tree(.empty)
    path = .root
    rootKey = nil
    super.init()
  }

  var node: Node { tree.node.descendant(path) }

  /// Whether the value is an object.
  @discardableResult
  open func hasChildren() -> Bool { node.childCount > 0 }

  /// Whether a descendant location has a value.
  @discardableResult
  open func hasChild(atPath path: String) -> Bool {
    !node.descendant(Path(path)).isEmpty
  }

  /// The data of a descendant location. A change of it also changes this value.
  ///
  /// The path is not checked, as in Google's SDK. If the app sets a value at an invalid key or at a key of
  /// more than 768 bytes, the server rejects the transaction. The completion receives that error.
  @discardableResult
  open func childData(byAppendingPath path: String) -> MutableData {
    let path = self.path.appending(Path(path))
    guard path.count <= ValueReader.maximumDepth else {
      usageException(
        "InvalidPathValidation",
        "(childDataByAppendingPath:) Max object depth exceeded: \(ValueReader.maximumDepth)")
    }
    return MutableData(tree: tree, path: path, rootKey: rootKey)
  }

  /// The value, as in `DataSnapshot.value`. Both nil and `NSNull` mean no value.
  ///
  /// Setting it keeps the location's priority unless the new value has one (`.priority`). A value that cannot
  /// be stored stops the program.
  open var value: Any? {
    get { ValueWriter.value(node) }
    set {
      do {
        var new = try ValueReader.node(newValue)
        if new.priority == nil { new = new.with(priority: node.priority) }
        tree.node = tree.node.setting(path, to: new)
      } catch {
        usageException("InvalidFirebaseData", "(setValue:) \(error.message)")
      }
    }
  }

  /// The priority: nil, a number or a string. A location without a value has none.
  open var priority: Any? {
    get { node.priority.map { ValueWriter.value($0.leafValue) } }
    set {
      do {
        tree.node = tree.node.setting(path, to: node.with(priority: try ValueReader.priority(newValue)))
      } catch {
        usageException("InvalidFirebaseData", "(setPriority:) \(error.message)")
      }
    }
  }

  /// The number of children.
  open var childrenCount: UInt { UInt(node.childCount) }

  /// The children in the order of their priorities, each as `MutableData`.
  open var children: NSEnumerator {
    ChildEnumerator(
      node.sortedChildren(by: .priority).map { key, _ in
        MutableData(tree: tree, path: path.child(key), rootKey: rootKey)
      })
  }

  /// The last key of the location; nil for the root.
  open var key: String? { path.last?.text ?? rootKey }

  /// The key and the value.
  open override var description: String { "MutableData (\(key ?? "")) \(ValueWriter.value(node))" }
}

/// The result of a transaction's block: commit or abort.
open class TransactionResult: NSObject {
  let node: Node?

  init(node: Node?) {
    self.node = node
    super.init()
  }

  /// Makes a result that ends the transaction.
  public override init() {
    node = nil
    super.init()
  }

  /// Commits: the value is sent to the server.
  @discardableResult
  open class func success(withValue value: MutableData) -> TransactionResult {
    TransactionResult(node: value.node)
  }

  /// Aborts: the transaction ends and nothing is stored.
  @discardableResult
  open class func abort() -> TransactionResult {
    TransactionResult(node: nil)
  }
}
