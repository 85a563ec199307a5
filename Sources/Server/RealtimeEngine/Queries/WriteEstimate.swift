// Estimates the size of a write before it is submitted, off the executor.

package import Access
import OrderedStore
package import RealtimeModel

extension RealtimeDatabase {
  /// Counts the values that an update would affect, up to a maximum: the new values, and the existing ones at
  /// their locations.
  ///
  /// - Parameter isConditional: whether the update has a condition on the stored value.
  /// - Throws: ``RealtimeModel/RealtimeError``, like the update itself.
  package func estimate(
    _ path: Path, _ changes: [(Path, Node)], isConditional: Bool = false, atMost maximum: Int,
    as caller: Principal
  ) async throws(RealtimeError) -> Int {
    guard
      case .count(let count) = try await read(
        .estimate(.update(path, changes), isConditional: isConditional, atMost: maximum), as: caller)
    else { return 0 }
    return count
  }
}
