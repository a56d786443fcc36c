// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {ERC1967Utils} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {Initializable} from "@openzeppelin/contracts/proxy/utils/Initializable.sol";
import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {Ownable2StepUpgradeable} from "@openzeppelin/contracts-upgradeable/access/Ownable2StepUpgradeable.sol";
import {Platform} from "../support/Platform.sol";
import {ICustodianSetup, IOwnerSetup} from "../support/Interfaces.sol";

/// @notice Ownership, initialisation, upgrades, and where the storage lies.
contract ProxiesTest is Platform {
    function test_OwnershipTakesTwoSteps() external {
        address[3] memory proxies = _proxies();
        for (uint256 i = 0; i < proxies.length; ++i) {
            Ownable2StepUpgradeable proxy = Ownable2StepUpgradeable(proxies[i]);
            vm.prank(OWNER);
            proxy.transferOwnership(STRANGER);
            assertEq(proxy.owner(), OWNER, "not yet");
            vm.prank(STRANGER);
            proxy.acceptOwnership();
            assertEq(proxy.owner(), STRANGER, "accepted");
        }
    }

    function test_RevertWhen_AnOfferWasReplacedByAnother() external {
        address[3] memory proxies = _proxies();
        for (uint256 i = 0; i < proxies.length; ++i) {
            Ownable2StepUpgradeable proxy = Ownable2StepUpgradeable(proxies[i]);
            vm.startPrank(OWNER);
            proxy.transferOwnership(STRANGER);
            proxy.transferOwnership(MAKER);
            vm.stopPrank();
            vm.prank(STRANGER);
            vm.expectRevert(abi.encodeWithSelector(OwnableUpgradeable.OwnableUnauthorizedAccount.selector, STRANGER));
            proxy.acceptOwnership();
            vm.prank(MAKER);
            proxy.acceptOwnership();
            assertEq(proxy.owner(), MAKER, "the last offer");
        }
    }

    function test_RevertWhen_TheFirstOwnerIsNobody() external {
        address[3] memory implementations = _implementations();
        bytes memory setup = abi.encodeCall(IOwnerSetup.initialize, (address(0)));
        bytes memory custodianSetup = abi.encodeCall(ICustodianSetup.initialize, (address(0), 0));
        for (uint256 i = 0; i < implementations.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(OwnableUpgradeable.OwnableInvalidOwner.selector, address(0)));
            new ERC1967Proxy(implementations[i], i == 0 ? custodianSetup : setup);
        }
    }

    function test_RevertWhen_InitializedTwice() external {
        vm.expectRevert(Initializable.InvalidInitialization.selector);
        ICustodianSetup(address(custodian)).initialize(STRANGER, 0);
        vm.expectRevert(Initializable.InvalidInitialization.selector);
        IOwnerSetup(address(book)).initialize(STRANGER);
        vm.expectRevert(Initializable.InvalidInitialization.selector);
        IOwnerSetup(address(entrypoint)).initialize(STRANGER);
    }

    function test_RevertWhen_InitializingAnImplementation() external {
        address[3] memory implementations = _implementations();
        vm.expectRevert(Initializable.InvalidInitialization.selector);
        ICustodianSetup(implementations[0]).initialize(STRANGER, 0);
        vm.expectRevert(Initializable.InvalidInitialization.selector);
        IOwnerSetup(implementations[1]).initialize(STRANGER);
        vm.expectRevert(Initializable.InvalidInitialization.selector);
        IOwnerSetup(implementations[2]).initialize(STRANGER);
    }

    function test_OnlyTheOwnerUpgrades() external {
        address[3] memory proxies = _proxies();
        address[3] memory next = _implementations();
        for (uint256 i = 0; i < proxies.length; ++i) {
            vm.prank(STRANGER);
            vm.expectRevert(abi.encodeWithSelector(OwnableUpgradeable.OwnableUnauthorizedAccount.selector, STRANGER));
            UUPSUpgradeable(proxies[i]).upgradeToAndCall(next[i], "");
            vm.prank(OWNER);
            UUPSUpgradeable(proxies[i]).upgradeToAndCall(next[i], "");
            bytes32 stored = vm.load(proxies[i], ERC1967Utils.IMPLEMENTATION_SLOT);
            assertEq(address(uint160(uint256(stored))), next[i], "implementation");
        }
    }

    /// @dev A proxy that changed over to anything else could never be upgraded again.
    function test_RevertWhen_UpgradingToWhatIsNoImplementation() external {
        address[3] memory proxies = _proxies();
        address[3] memory next = _implementations();
        vm.deal(OWNER, 1);
        vm.startPrank(OWNER);
        for (uint256 i = 0; i < proxies.length; ++i) {
            UUPSUpgradeable proxy = UUPSUpgradeable(proxies[i]);
            bytes32 before = vm.load(proxies[i], ERC1967Utils.IMPLEMENTATION_SLOT);
            address[2] memory bad = [address(base), proxies[i]];
            for (uint256 k = 0; k < bad.length; ++k) {
                vm.expectRevert(abi.encodeWithSelector(ERC1967Utils.ERC1967InvalidImplementation.selector, bad[k]));
                proxy.upgradeToAndCall(bad[k], "");
            }
            vm.expectRevert();
            proxy.upgradeToAndCall(STRANGER, "");
            vm.expectRevert(ERC1967Utils.ERC1967NonPayable.selector);
            proxy.upgradeToAndCall{value: 1}(next[i], "");
            vm.expectRevert(UUPSUpgradeable.UUPSUnauthorizedCallContext.selector);
            UUPSUpgradeable(next[i]).upgradeToAndCall(next[i], "");
            assertEq(vm.load(proxies[i], ERC1967Utils.IMPLEMENTATION_SLOT), before, "as it was");
        }
    }

    function test_UpgradeKeepsALiveCurveAndAClaim() external {
        _postDefault();
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, address(base), 77, 0);
        vm.prank(OWNER);
        entrypoint.setTakerFee(TAKER, 500);
        uint256 quoted = _quote(true, 1000e6);
        bytes32 before = keccak256(abi.encode(book.marketState(market)));

        address[3] memory proxies = _proxies();
        address[3] memory next = _implementations();
        for (uint256 i = 0; i < proxies.length; ++i) {
            vm.prank(OWNER);
            UUPSUpgradeable(proxies[i]).upgradeToAndCall(next[i], "");
        }
        assertEq(keccak256(abi.encode(book.marketState(market))), before, "market");
        assertEq(_quote(true, 1000e6), quoted, "quote");
        (uint256 amount, uint64 readyAt) = custodian.claim(MAKER, address(base));
        assertEq(amount, 77, "claim");
        assertEq(readyAt, START + DELAY_SEC, "readyAt");
        assertEq(custodian.withdrawDelay(), DELAY_SEC, "delay");
        assertEq(entrypoint.takerFee(TAKER), 500, "fee");
        assertLe(1, _swap(true, 1000e6), "still trades");
    }

    /// @dev Each contract keeps all of its own state under its ERC-7201 location, so that base contracts can't collide with it.
    function test_StorageLocations() external {
        vm.prank(OWNER);
        entrypoint.setTakerFee(TAKER, 123);
        uint256 slot = _location("curvebook.storage.Custodian");
        assertEq(uint256(vm.load(address(custodian), bytes32(slot + 3))), DELAY_SEC, "Custodian");
        slot = _location("curvebook.storage.CurveBook");
        assertEq(uint256(vm.load(address(book), bytes32(slot + 2))), 1, "CurveBook");
        slot = _location("curvebook.storage.Entrypoint");
        slot = uint256(keccak256(abi.encode(TAKER, slot)));
        assertEq(uint256(vm.load(address(entrypoint), bytes32(slot))), 123, "Entrypoint");
        for (uint256 i = 0; i < 8; ++i) {
            assertEq(vm.load(address(custodian), bytes32(i)), 0, "no plain slot");
            assertEq(vm.load(address(book), bytes32(i)), 0, "no plain slot");
            assertEq(vm.load(address(entrypoint), bytes32(i)), 0, "no plain slot");
        }
    }

    function _location(string memory id) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(uint256(keccak256(bytes(id))) - 1))) & ~uint256(0xff);
    }

    function _proxies() private view returns (address[3] memory) {
        return [address(custodian), address(book), address(entrypoint)];
    }

    function _implementations() private returns (address[3] memory) {
        return
            [
                deploy("Custodian.sol:Custodian", abi.encode(custodianPeers)),
                deploy("CurveBook.sol:CurveBook", abi.encode(entrypoint, custodian, settler)),
                deploy("Entrypoint.sol:Entrypoint", abi.encode(book, custodian, settler))
            ];
    }
}
