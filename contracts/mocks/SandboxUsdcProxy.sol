// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The proxy in front of {SandboxUsdc}, for local chains.
/// @notice Works like the proxy of the real token: it keeps the implementation and an admin in the slots of OpenZeppelin's old convention, and
/// the admin can't use the token. So a call costs as much gas as on the real chain, which reads both slots.
contract SandboxUsdcProxy {
    event AdminChanged(address previousAdmin, address newAdmin);
    event Upgraded(address implementation);

    error AdminCannotFallBack();
    error NotAdmin(address caller);
    error NoCode(address implementation);

    bytes32 private constant IMPLEMENTATION_SLOT = keccak256("org.zeppelinos.proxy.implementation");
    bytes32 private constant ADMIN_SLOT = keccak256("org.zeppelinos.proxy.admin");

    constructor(address implementation_, address admin_) {
        _setImplementation(implementation_);
        _write(ADMIN_SLOT, admin_);
    }

    modifier onlyAdmin() {
        if (msg.sender != _read(ADMIN_SLOT)) revert NotAdmin(msg.sender);
        _;
    }

    function admin() external view returns (address) {
        return _read(ADMIN_SLOT);
    }

    function implementation() external view returns (address) {
        return _read(IMPLEMENTATION_SLOT);
    }

    function changeAdmin(address newAdmin) external onlyAdmin {
        emit AdminChanged(msg.sender, newAdmin);
        _write(ADMIN_SLOT, newAdmin);
    }

    function upgradeTo(address newImplementation) external onlyAdmin {
        _setImplementation(newImplementation);
        emit Upgraded(newImplementation);
    }

    fallback() external {
        if (msg.sender == _read(ADMIN_SLOT)) revert AdminCannotFallBack();
        address target = _read(IMPLEMENTATION_SLOT);
        // Passes on the whole call data and the whole answer. It overwrites memory, since no code of the compiler runs afterwards.
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), target, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 {
                revert(0, returndatasize())
            }
            default {
                return(0, returndatasize())
            }
        }
    }

    function _setImplementation(address value) private {
        if (value.code.length == 0) revert NoCode(value);
        _write(IMPLEMENTATION_SLOT, value);
    }

    function _read(bytes32 slot) private view returns (address value) {
        assembly ("memory-safe") {
            value := sload(slot)
        }
    }

    function _write(bytes32 slot, address value) private {
        assembly ("memory-safe") {
            sstore(slot, value)
        }
    }
}
