// One change to one document, as commits carry it.
//
// Invariant: a mask is told by its presence, never by its length: an empty one touches no field but makes
// sure that the document exists; none at all replaces the document.

/// A write: what to do, to which document, and under which condition.
public struct Write: Hashable, Sendable {
  /// What a write does.
  public enum Operation: Hashable, Sendable {
    /// Sets the document's fields: all of them, or, with a mask, only the named ones.
    case update(DocumentName, fields: MapValue)
    /// Deletes the document, if it exists.
    case delete(DocumentName)
    /// Changes nothing, only evaluates the precondition.
    case verify(DocumentName)
    /// Applies transforms only; the older form of an update with an empty mask.
    case transform(DocumentName, [FieldTransform])
  }

  /// What to do.
  public var operation: Operation
  /// Fields that an update touches: set if given, deleted if not. Nil replaces the whole document. A write is made with
  /// them in order and without repeats, so that nobody sorts them where other writes wait.
  public var mask: [FieldPath]?
  /// Transforms to apply after an update's fields, in order.
  public var transforms: [FieldTransform]
  /// The condition on the document as it is before this write.
  public var precondition: Precondition?

  /// Makes a write.
  public init(
    _ operation: Operation, mask: [FieldPath]? = nil, transforms: [FieldTransform] = [],
    precondition: Precondition? = nil
  ) {
    self.operation = operation
    self.mask = mask?.distinctInOrder
    self.transforms = transforms
    self.precondition = precondition
  }

  /// The document that the write is about.
  public var document: DocumentName {
    switch operation {
    case .update(let name, _), .delete(let name), .verify(let name), .transform(let name, _): name
    }
  }

  /// The transforms that the write applies, whichever way it states them.
  public var allTransforms: [FieldTransform] {
    if case .transform(_, let own) = operation { return own + transforms }
    return transforms
  }
}

/// A condition on a document's state before a write.
public enum Precondition: Hashable, Sendable {
  /// The document must exist (true) or must not (false).
  case exists(Bool)
  /// The document must exist and must last have been updated at this time.
  case updateTime(Timestamp)
}

/// What became of one write.
public struct WriteResult: Hashable, Sendable {
  /// When the document was last changed: now, or before if the write changed nothing; nil after a delete.
  public var updateTime: Timestamp?
  /// One result for each transform, in order; null for array transforms.
  public var transformResults: [Value]

  /// Makes a result.
  public init(updateTime: Timestamp?, transformResults: [Value] = []) {
    self.updateTime = updateTime
    self.transformResults = transformResults
  }
}
