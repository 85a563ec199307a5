// Applies a masked update to a document's fields, in one pass over the fields and the sorted mask.
//
// Invariant: the result equals setting or removing one path after the other. The order does not matter: if one path
// lies inside another, the outer path determines the result. For a sorted mask, as in a `Write`, the cost is
// proportional to the number of fields plus the number of paths. The bound matters because clients choose both numbers,
// and other writes wait during the update.

extension MapValue {
  /// These fields after a masked update: sets the mask's paths that the update contains and removes the others.
  public func merging(_ update: MapValue, mask: [FieldPath]) -> MapValue {
    MapValue.merge(self, update, mask.sortedIfNeeded[...], depth: 0).fields
  }

  /// Merges the fields that sorted paths name. The paths agree in their first `depth` names.
  ///
  /// - Parameter update: nil if the update does not contain this map.
  /// - Returns: the fields, and whether any was set. Only a set field may create a map.
  private static func merge(
    _ existing: MapValue, _ update: MapValue?, _ paths: ArraySlice<FieldPath>, depth: Int
  ) -> (fields: MapValue, didSet: Bool) {
    var result: [Entry] = []
    result.reserveCapacity(existing.count + (update == nil ? 0 : paths.count))
    var didSet = false
    var position = 0
    var rest = paths
    while let first = rest.first {
      let name = first.segments[depth]
      let group = rest.prefix { $0.segments[depth].hasSameUTF8(as: name) }
      rest = rest.dropFirst(group.count)
      // Fields before the name stay as they are.
      let (next, isPresent) = existing.find(name, from: position)
      result += existing.entries[position..<next]
      position = isPresent ? next + 1 : next
      let old = isPresent ? existing.entries[next].value : nil
      let new = update?[name]
      var value: Value?
      if first.count == depth + 1 {
        value = new
        didSet = didSet || new != nil
      } else {
        var inner = MapValue()
        var isMap = false
        if case .map(let map)? = old { (inner, isMap) = (map, true) }
        var source: MapValue?
        if case .map(let map)? = new { source = map }
        value = old
        if isMap || source != nil {
          let merged = merge(inner, source, group, depth: depth + 1)
          if isMap || merged.didSet { value = .map(merged.fields) }
          didSet = didSet || merged.didSet
        }
      }
      if let value { result.append(Entry(key: name, value: value)) }
    }
    result += existing.entries[position...]
    return (MapValue(sorted: result), didSet)
  }
}
