// Checking writes and applying them to a document: the same on the server and in a client's cache.
//
// Invariant: an update's fields go in first, then the transforms in order, each seeing the one before.

extension Write {
  /// What a write makes of a document.
  public struct Outcome: Hashable, Sendable {
    /// The document's fields afterwards; nil if it does not exist then.
    public var fields: MapValue?
    /// One result for each transform, in order.
    public var transformResults: [Value]
  }

  /// Applies the write to a document's fields, nil if it does not exist. Preconditions are not looked at.
  public func apply(to existing: MapValue?, requestTime: Timestamp) -> Outcome {
    apply(to: existing, requestTime: requestTime, spending: { _ in })
  }

  /// Applies the write for someone who bounds what that costs: before each step, `spend` is told about how many of the
  /// document's fields and elements it goes over. What the write itself holds does not count.
  public func apply(
    to existing: MapValue?, requestTime: Timestamp, spending spend: (Int) throws -> Void
  ) rethrows -> Outcome {
    var fields: MapValue
    switch operation {
    case .delete: return Outcome(fields: nil, transformResults: [])
    case .verify: return Outcome(fields: existing, transformResults: [])
    case .transform: fields = existing ?? MapValue()
    case .update(_, let new):
      fields = new
      if let mask {
        let existing = existing ?? MapValue()
        try spend(existing.work(alongTheWayTo: mask))
        fields = existing.merging(new, mask: mask)
      }
    }
    let transforms = allTransforms
    if !transforms.isEmpty { try spend(fields.work(alongTheWayTo: transforms.map(\.field))) }
    var results: [Value] = []
    results.reserveCapacity(transforms.count)
    for transform in transforms {
      let current = fields.value(at: transform.field)
      try spend(transform.work(on: current))
      let outcome = transform.apply(to: current, requestTime: requestTime)
      fields.set(outcome.value, at: transform.field)
      results.append(outcome.result)
    }
    return Outcome(fields: fields, transformResults: results)
  }

  /// The write with its values as they are stored, so that what it makes of a stored document can be stored as it is.
  public var stored: Write {
    var write = self
    switch operation {
    case .update(let name, let fields): write.operation = .update(name, fields: fields.stored)
    case .transform(let name, let own): write.operation = .transform(name, own.map(\.stored))
    case .delete, .verify: break
    }
    write.transforms = transforms.map(\.stored)
    return write
  }

  /// Whether applying the write has changed a document. Looks only at what the write names, each path once.
  public func hasChanged(_ before: MapValue?, into after: MapValue?) -> Bool {
    guard let before, let after else { return (before == nil) != (after == nil) }
    if case .update = operation, mask == nil { return before != after }
    var paths = Set(mask ?? [])
    for transform in allTransforms { paths.insert(transform.field) }
    return paths.contains { before.value(at: $0) != after.value(at: $0) }
  }

  /// Checks everything that can be checked without the document: INVALID_ARGUMENT if the write can never be
  /// applied to a document of this database. The size of the result is checked when it is known.
  public func validate(
    in database: DatabaseName, limits: FirestoreLimits = .standard
  ) throws(FirestoreError) {
    guard document.database == database else {
      throw .invalidArgument("Document \(document) does not belong to database \(database).")
    }
    switch operation {
    case .update(let name, let fields):
      if let mask {
        for path in mask { try DocumentValidation.validate(written: path) }
        // What the mask leaves out is ignored, so only what it names has to be storable.
        let named = fields.projected(to: FieldMask(mask))
        if DocumentSize.of(fields: named) > limits.documentBytes {
          throw .invalidArgument(
            "Document '\(name)' cannot be written because what its mask names exceeds the maximum allowed size of "
              + "a document, \(limits.documentBytes) bytes.")
        }
        try DocumentValidation.validate(named, limits: limits)
      } else {
        try DocumentValidation.validate(fields, of: name, limits: limits)
      }
    case .delete: try refuseUpdateParts("delete")
    case .verify: try refuseUpdateParts("verify")
    case .transform(_, let own):
      try refuseUpdateParts("transform")
      if own.isEmpty { throw .invalidArgument("a transform must specify at least one field transform.") }
    }
    let transforms = allTransforms
    for transform in transforms { try transform.validate(limits: limits) }
    try refuseNested(transforms)
  }

  /// Refuses to transform a field and another inside it in one write: which came first would decide what is left of them.
  private func refuseNested(_ transforms: [FieldTransform]) throws(FirestoreError) {
    guard transforms.count > 1 else { return }
    // What is inside a field follows it in this order, with nothing else between.
    let fields = transforms.map(\.field).sorted()
    for (field, next) in zip(fields, fields.dropFirst())
    where next.count > field.count && next.hasPrefix(field) {
      throw .invalidArgument(
        "Cannot transform property \(field) and its nested property \(next) at the same time.")
    }
  }

  private func refuseUpdateParts(_ kind: String) throws(FirestoreError) {
    if mask != nil { throw .invalidArgument("a \(kind) must not specify a document mask.") }
    if !transforms.isEmpty { throw .invalidArgument("a \(kind) must not specify a update transform.") }
  }
}

extension MapValue {
  /// How many fields are copied to change these paths: those of every map on the way, of neighbours in the list once.
  fileprivate func work(alongTheWayTo paths: [FieldPath]) -> Int {
    var work = count
    var previous: ArraySlice<String> = []
    for path in paths {
      let parents = path.segments.dropLast()
      let shared = zip(previous, parents).prefix { $0 == $1 }.count
      var map = self
      for (level, name) in parents.enumerated() {
        guard case .map(let inner)? = map[name] else { break }
        map = inner
        if level >= shared { work += map.count }
      }
      previous = parents
    }
    return work
  }
}

extension Precondition {
  /// Checks the condition against the stored document, nil if it is missing, with the product's errors:
  /// NOT_FOUND, ALREADY_EXISTS, or FAILED_PRECONDITION for a wrong update time (also where the document is
  /// missing, since clients retry that code and not the others).
  public func check(_ name: DocumentName, updateTime stored: Timestamp?) throws(FirestoreError) {
    switch self {
    case .exists(true): if stored == nil { throw .notFound("No document to update: \(name)") }
    case .exists(false): if stored != nil { throw .alreadyExists("Document already exists: \(name)") }
    case .updateTime(let required):
      guard let stored else {
        throw .failedPrecondition(
          "there is no document, which does not match the required base version (\(required.microseconds))")
      }
      if stored != required {
        throw .failedPrecondition(
          "the stored version (\(stored.microseconds)) does not match the required base version "
            + "(\(required.microseconds))")
      }
    }
  }
}
