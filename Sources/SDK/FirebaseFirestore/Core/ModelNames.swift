// Aliases for types of FirestoreModel that have the same names as classes of the public API.

import FirestoreModel

typealias ModelQuery = FirestoreModel.Query
typealias ModelFilter = FirestoreModel.Filter
typealias ModelFieldPath = FirestoreModel.FieldPath
typealias ModelTimestamp = FirestoreModel.Timestamp
typealias ModelGeoPoint = FirestoreModel.GeoPoint

/// The number of a target on the watch stream: even for queries, odd for limbo resolutions.
typealias TargetID = Int32

/// The number of a batch in the mutation queue. Numbers ascend from 1.
typealias BatchID = Int
