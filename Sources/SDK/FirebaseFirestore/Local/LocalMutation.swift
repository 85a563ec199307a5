// Local mutations: the effect of a write on a document in the cache, before and after the server's
// acknowledgement.
//
// A chain of writes has an optional mask with the fields that it changed. Nil means that the writes replaced
// the complete document. The mask is used to make a single overlay write with the same effect.

import FirestoreModel

/// The fields that local writes changed; nil means the complete document.
typealias TouchedFields = Set<ModelFieldPath>?

extension Write {
  /// The mask of the write as touched fields.
  var touchedFields: TouchedFields { mask.map(Set.init) }

  private func isAllowed(on document: CachedDocument) -> Bool {
    switch precondition {
    case nil: true
    case .exists(let exists): document.isFound == exists
    case .updateTime(let time): document.isFound && document.version == time
    }
  }

  /// Applies the write to the local view of a document. Returns the fields that were changed, including those
  /// of earlier writes.
  func applyLocally(
    to document: inout CachedDocument, touched: TouchedFields, at time: ModelTimestamp
  ) -> TouchedFields {
    guard isAllowed(on: document) else { return touched }
    switch operation {
    case .update(_, let fields):
      var result = mask == nil ? fields : patched(document.fields, with: fields)
      for transform in transforms {
        let before = document.fields.value(at: transform.field)
        let value = transform.localResult(before: before, at: time)
        result.set(value, at: transform.field)
      }
      document.setFound(result, version: document.version, changes: .local)
      guard let mask, let touched else { return nil }
      return touched.union(mask).union(transforms.map(\.field))
    case .delete:
      document.setMissing(version: document.version, changes: .local)
      return nil
    case .verify, .transform:
      return touched
    }
  }

  /// Applies an acknowledged write to the cached server state of a document.
  func applyAcknowledged(to document: inout CachedDocument, result: WriteResult, version: ModelTimestamp) {
    switch operation {
    case .update(_, let fields):
      guard isAllowed(on: document) || mask == nil else {
        // The server accepted a change of a document whose contents are not in the cache.
        document.setUnknown(version: version)
        return
      }
      var contents = mask == nil ? fields : patched(document.fields, with: fields)
      for (index, transform) in transforms.enumerated() {
        let before = document.fields.value(at: transform.field)
        let serverResult = index < result.transformResults.count ? result.transformResults[index] : nil
        contents.set(
          transform.acknowledgedResult(before: before, serverResult: serverResult), at: transform.field)
      }
      document.setFound(contents, version: version, changes: .committed)
    case .delete:
      document.setMissing(version: version, changes: .committed)
    case .verify, .transform:
      break
    }
  }

  private func patched(_ fields: MapValue, with values: MapValue) -> MapValue {
    fields.merging(values, mask: mask ?? [])
  }

  /// A write with the values from which increments start, so that applying the batch again to a newer
  /// document gives the same numbers. Nil if the write needs no such values.
  func baseWrite(over document: CachedDocument) -> Write? {
    var base = MapValue()
    var paths: [ModelFieldPath] = []
    for transform in transforms {
      guard let value = transform.baseValue(document.fields.value(at: transform.field)) else {
        continue
      }
      base.set(value, at: transform.field)
      paths.append(transform.field)
    }
    guard !paths.isEmpty else { return nil }
    return Write(.update(self.document, fields: base), mask: paths, precondition: .exists(true))
  }

  /// The single write that has the effect of the local writes on a document; nil if they had no effect.
  static func overlay(for document: CachedDocument, touched: TouchedFields) -> Write? {
    guard document.hasLocalChanges else { return nil }
    guard let touched else {
      if document.isMissing { return Write(.delete(document.name)) }
      return Write(.update(document.name, fields: document.fields))
    }
    guard !touched.isEmpty else { return nil }
    var fields = MapValue()
    var mask: Set<ModelFieldPath> = []
    for path in touched where !mask.contains(path) {
      var path = path
      var value = document.fields.value(at: path)
      // A removed nested field is written through its parent, because removing only the field could also
      // remove the parent.
      if value == nil, path.count > 1, let parent = path.parent {
        path = parent
        value = document.fields.value(at: path)
      }
      fields.put(value, at: path)
      mask.insert(path)
    }
    return Write(.update(document.name, fields: fields), mask: Array(mask))
  }
}

extension ModelFieldPath {
  /// The path of the enclosing map; nil for a top-level field.
  var parent: ModelFieldPath? { ModelFieldPath(segments: Array(segments.dropLast())) }
}

extension FieldTransform {
  /// The client's estimate of the result that the server will compute.
  func localResult(before: Value?, at time: ModelTimestamp) -> Value {
    switch operation {
    case .serverTimestamp:
      var previous = before
      if case .pendingServerTimestamp(let pending)? = before { previous = pending.previousValue }
      return .pendingServerTimestamp(PendingServerTimestamp(localWriteTime: time, previousValue: previous))
    case .increment, .maximum, .minimum, .appendMissing, .removeAll:
      return apply(to: before, requestTime: time).value
    }
  }

  /// The field's value after the server has acknowledged the write.
  func acknowledgedResult(before: Value?, serverResult: Value?) -> Value {
    switch operation {
    case .appendMissing, .removeAll: apply(to: before, requestTime: .epoch).value
    case .serverTimestamp, .increment, .maximum, .minimum: serverResult ?? .null
    }
  }

  /// The value from which a repeated application must start; nil for transforms that can be repeated.
  func baseValue(_ before: Value?) -> Value? {
    switch operation {
    case .increment:
      switch before {
      case .integer?, .double?: before
      default: .integer(0)
      }
    case .serverTimestamp, .maximum, .minimum, .appendMissing, .removeAll: nil
    }
  }
}
