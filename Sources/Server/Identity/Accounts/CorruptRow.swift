// The error of a stored row that cannot be decoded or contradicts its key, for example in a damaged file.

/// A stored row that cannot be read.
package struct CorruptRow: Error, Sendable, CustomStringConvertible {
  /// The problem, for the operator.
  package var description: String

  /// Creates an error.
  package init(_ description: String) { self.description = description }
}
