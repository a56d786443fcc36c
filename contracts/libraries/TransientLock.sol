// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {TransientSlot} from "@openzeppelin/contracts/utils/TransientSlot.sol";

/// @title OpenZeppelin's transient lock as a modifier without inner functions, which saves every swap two jumps.
abstract contract TransientLock is ReentrancyGuardTransient {
    using TransientSlot for *;

    /// @dev As `nonReentrant`, and the same lock.
    modifier locked() {
        if (_reentrancyGuardEntered()) revert ReentrancyGuardReentrantCall();
        _reentrancyGuardStorageSlot().asBoolean().tstore(true);
        _;
        _reentrancyGuardStorageSlot().asBoolean().tstore(false);
    }
}
